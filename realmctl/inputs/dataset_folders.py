"""Find the data files of a Hugging Face dataset folder, by split.

`datasets.save_to_disk` writes a folder with `state.json`, which names the Arrow files; a dataset with splits has
`dataset_dict.json` and one such folder a split. The hub keeps Parquet files such as `data/train-00000-of-00002.parquet`
beside a README. (huggingface.co/docs/datasets and huggingface.co/docs/hub/datasets-file-names-and-splits)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any, TypeVar

from realmctl.artifacts.hashing import entries_below, files_below, unread
from realmctl.errors import InputError

SHARD = re.compile(r"(?:.+-)?(?P<split>\w+)-\d{5}-of-\d{5}(?:-\w+)?|(?P<number>\d+)")
MAX_STATE_BYTES = 2**20
P = TypeVar("P", bound=PurePath)


def data_files(folder: Path) -> dict[str, list[Path]]:
    """Return {split: its files in order}, or {} if the folder holds no Parquet or Arrow file.

    A split is named by the shards of it, or by a folder of numbered files; any other file is a split of its own.
    Hidden files, and the `cache-*` files that `map` of datasets leaves behind, are left out.

    Raises:
        InputError: a file that says what the folder holds is damaged, or the rows of the folder are a selection that
            was not saved flat.
    """
    if (listing := folder / "dataset_dict.json").is_file():
        names = _field(listing, "splits", list)
        return {name: _saved_files(folder / _base_name(listing, name)) for name in names}
    if (folder / "state.json").is_file():
        return {folder.name: _saved_files(folder)}
    files = []
    for file, why in entries_below(folder):
        if file.suffix in (".parquet", ".arrow") and not file.name.startswith("cache-"):
            if why:
                raise unread(file, why)
            files.append(file.relative_to(folder))
    return {split: [folder / file for file in files] for split, files in by_split(files).items()}


def by_split(files: Iterable[P]) -> dict[str, list[P]]:
    """Return {split: files} of files with tables, by their paths in a data set."""
    found: dict[str, list[P]] = {}
    for file in files:
        shard = SHARD.fullmatch(file.stem)
        name = (shard["split"] or "") if shard else file.stem
        found.setdefault((file.parent / name).as_posix(), []).append(file)
    return found


def only_split(folder: Path) -> list[Path]:
    """Return the data files of a folder with one split, so that training and test do not mix.

    Raises:
        InputError: the folder holds another number of splits.
    """
    splits = data_files(folder)
    if not splits:
        first = next(iter(files_below(folder)), None)
        such = f", such as {first}" if first else ""
        raise InputError(
            f"{folder} is a folder, and not one of a Hugging Face dataset (Parquet, Arrow). Name a file{such}."
        )
    if len(splits) > 1:
        raise InputError(
            f"{folder} holds the splits {', '.join(splits)}, and one is read. Name a file, or a folder with one."
        )
    return next(iter(splits.values()))


def _saved_files(folder: Path) -> list[Path]:
    state = folder / "state.json"
    if not state.is_file():
        raise InputError(f"{state} is missing. It names the files of a saved dataset. Save the dataset again.")
    if _json(state).get("_indices_data_files"):
        raise InputError(
            f"{folder} is a selection of the rows of other files. Save it flat: flatten_indices() before save_to_disk."
        )
    entries = _field(state, "_data_files", list)
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in entries]
    files = [folder / _base_name(state, name) for name in names]
    if missing := [file for file in files if not file.is_file()]:
        raise InputError(f"{missing[0]} is missing, and {state} names it. Save the dataset again.")
    return files


def _base_name(path: Path, name: object) -> str:
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise InputError(f"{path} names {str(name)[:80]!r}, and a name in the same folder is expected. Save it again.")
    return name


def _field(path: Path, name: str, kind: type) -> Any:
    value = _json(path).get(name)
    if not isinstance(value, kind):
        raise InputError(f"{path} has no {kind.__name__} under {name}. Save the dataset again.")
    return value


def _json(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        data = file.read(MAX_STATE_BYTES)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}). Save the dataset again.") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object. Save the dataset again.")
    return found
