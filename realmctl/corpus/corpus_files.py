"""Choose the corpus files of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from realmctl.errors import InputError
from realmctl.inputs.dataset_folders import data_files
from realmctl.log import say, warn


def corpus_files(path: Path) -> list[Path]:
    """Return a file itself, or the corpus files of a folder in sorted order.

    Of a BEIR folder these are the corpus, of a Hugging Face dataset folder the data files of all splits, and of any
    other folder all regular files that are not hidden.

    Raises:
        InputError: the path is no file or folder, or the folder has no file.
    """
    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"{path} is not a file or a folder, so it cannot be read as a corpus. Check the path.")
        return [path]
    if splits := data_files(path):
        files = [file for split in splits.values() for file in split]
        say(f"{path}: a folder with {len(files)} Parquet or Arrow files, splits {', '.join(splits)}")
        return files
    found = _regular_files(path)
    corpus = [file for file in found if file.parent == path and file.name.partition(".")[0] == "corpus"]
    entries = {file.relative_to(path).parts[0].partition(".")[0] for file in found}
    if corpus and entries & {"queries", "qrels"}:
        say(f"{path}: this is a BEIR folder, and only its corpus is read")
        return corpus
    if not found:
        raise InputError(f"{path} is a folder without files. Name one with corpus files in it.")
    return sorted(found, key=lambda file: file.relative_to(path).parts)


def _regular_files(path: Path) -> list[Path]:
    found = []
    for below, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for file in (Path(below) / name for name in names if not name.startswith(".")):
            if file.exists() and not file.is_file():
                warn(f"{file} is a pipe, a socket or a device, and is not read.")
            else:
                found.append(file)
    return found
