"""A file of a corpus: what the reader of its format is given."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts.hashing import entries_below, unread
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.inputs.dataset_folders import data_files
from realmctl.log import say, warn
from realmctl.pipeline.sources import is_copy

COMPRESSION = re.compile(r"\.(?:gz|bz2|xz|zst)$", re.IGNORECASE)
ENDING = re.compile(r"\.[A-Za-z]\w{0,8}$")
HTML_ENDINGS = (".html", ".htm", ".xhtml")
SITE_CODE = frozenset({".js", ".mjs", ".css", ".map"})
"""Endings of files beside pages of HTML that no reader of the pages sees."""
BESIDE_TABLES = re.compile(
    r"(?:readme|licen[cs]e|citation|changelog)(?:\..*)?|.*\.(?:json|py|ya?ml|lock|cff)", re.IGNORECASE
)
"""Names of files beside the tables of a data set of the hub, or of `save_to_disk`."""
LEFT_OUT = "With --bad-files skip, `index-docs`, `adapt` and `chunk` leave such files out."


@dataclass(frozen=True)
class CorpusFile:
    """A file and how it is read.

    Attributes:
        path: the file.
        settings: how it is read.
        name: its name in the corpus, unique there: its path within the folder that was named, or the name of a file that
            was named itself. Ids of documents that have none in their file contain it.
        in_folder: whether it lies in a folder that was named.
        problem: what it is, if it cannot be opened, such as a named pipe; empty for a file.
    """

    path: Path
    settings: CorpusSettings
    name: str
    in_folder: bool = False
    problem: str = ""

    @property
    def ending(self) -> str:
        """The ending of its name in lower case, before that of a compression, such as `.csv`. Empty if it has none."""
        found = ENDING.search(COMPRESSION.sub("", self.path.name))
        return found[0].lower() if found else ""

    @property
    def stem(self) -> str:
        """Its name without folders and endings, in NFC: archives of macOS write 서울 by its letters, which few tokenizers know."""
        return unicodedata.normalize("NFC", ENDING.sub("", COMPRESSION.sub("", written(self.path.name))))

    @contextmanager
    def left_out_by_option(self) -> Iterator[None]:
        """Add to an InputError about a file of a folder how such files are left out, unless they are."""
        try:
            yield
        except InputError as error:
            if self.in_folder and self.settings.bad_files != "skip":
                error.args = (f"{error} {LEFT_OUT}",)
            raise


def written(name: str) -> str:
    """The name of a file as text: bytes that are not UTF-8 become `\\x` and two digits, as in names from an old archive."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def corpus_files(paths: Iterable[Path], settings: CorpusSettings) -> list[CorpusFile]:
    """Return the files of a corpus in order; those of a folder are sorted.

    If two of them would have one name, as `a/x.txt` and `b/x.txt` that were both named, all have their path from the
    lowest folder that holds all, or the number of what was named before it where that is a copy of an address.

    Raises:
        InputError: a path is no file or folder, or a folder has no file, or has something that is neither, such as a pipe, and
            the settings do not say that it is skipped.
    """
    paths = [*paths]
    named = [(path, *found) for path in paths for found in _files(path)]
    if settings.bad_files != "skip":
        for error in (unread(file, problem) for _, file, problem in named if problem):
            raise InputError(f"{error} {LEFT_OUT}")
    names = [file.name if file == path else file.relative_to(path).as_posix() for path, file, _ in named]
    if len({*names}) < len(names) and any(map(is_copy, paths)):  # the folder of a copy has another name in each run
        names = [f"{paths.index(path) + 1}/{name}" for (path, _, _), name in zip(named, names, strict=True)]
    elif len({*names}) < len(names):
        files = [file.absolute() for _, file, _ in named]
        top = os.path.commonpath([file.parent for file in files])
        names = [file.relative_to(top).as_posix() for file in files]
    return [
        CorpusFile(file, settings, written(name), in_folder=file != path, problem=problem)
        for name, (path, file, problem) in zip(names, named, strict=True)
    ]


def _files(path: Path) -> list[tuple[Path, str]]:
    """Return a file itself, or the corpus files of a folder in sorted order, each with what it is if it cannot be opened.

    Of a BEIR folder these are the corpus, of a Hugging Face dataset folder the data files of all splits, and of any
    other folder all files that are not hidden, also behind links.
    """
    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"{path} is not a file or a folder, so it cannot be read as a corpus. Check the path.")
        return [(path, "")]
    if splits := data_files(path):
        files = [file for split in splits.values() for file in split]
        say(f"{path}: a folder with {len(files)} Parquet or Arrow files, splits {', '.join(splits)}")
        _tell_what_is_beside(path, files)
        return [(file, "") for file in files]
    problems = dict(entries_below(path))
    found = list(problems)
    corpus = [file for file in found if file.parent == path and file.name.partition(".")[0] == "corpus"]
    entries = {file.relative_to(path).parts[0].partition(".")[0] for file in found}
    if corpus and entries & {"queries", "qrels"}:
        say(f"{path}: this is a BEIR folder, and only its corpus is read")
        return [(file, problems[file]) for file in corpus]
    if not found:
        raise InputError(f"{path} is a folder without files. Name one with corpus files in it.")
    if code := _code_of_site(found):
        say(
            f"{path}: {len(code)} files of scripts, styles and sources of pages are left out; name such a file itself to read it"
        )
    return [(file, problem) for file, problem in problems.items() if file not in code]


def _tell_what_is_beside(folder: Path, tables: Collection[Path]) -> None:
    """Warn of files beside the tables of a folder that a data set of the hub does not have."""
    others = [
        file
        for file, _ in entries_below(folder)
        if file not in tables and not BESIDE_TABLES.fullmatch(file.name) and file.suffix not in (".arrow", ".parquet")
    ]
    if others:
        warn(
            f"{folder}: {len(others)} files beside its Parquet or Arrow files are left out, such as {others[0]}. Name them, or move the tables elsewhere, to read them."
        )


def _code_of_site(files: Iterable[Path]) -> set[Path]:
    """Of a folder with pages of HTML its scripts and styles, and the sources that Sphinx copies beside its pages."""
    known = {*files}
    if not any(file.suffix.lower() in HTML_ENDINGS for file in known):
        return set()
    built = {file.parent for file in known if file.name == "searchindex.js"}
    return {
        file
        for file in known
        if file.suffix.lower() in SITE_CODE or any(site / "_sources" in file.parents for site in built)
    }
