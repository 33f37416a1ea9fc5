"""BEIR's folders (github.com/beir-cellar/beir): corpus.jsonl, queries.jsonl, and qrels/train.tsv, dev.tsv and test.tsv, or other
files that `qrels.read_qrels` reads.

The functions take a folder or one of its files. A file is returned as it is.
"""

from __future__ import annotations

from pathlib import Path

from realmctl.errors import InputError
from realmctl.log import say

QRELS_ENDINGS = frozenset((".tsv", ".txt", ".csv", ".qrels", ".qrel", ".trec", ".jsonl", ".parquet"))


def is_beir(path: Path) -> bool:
    """Return whether a path is a BEIR folder: queries beside judgements."""
    return path.is_dir() and (path / "qrels").is_dir() and bool(_named(path, "queries"))


def queries_file(path: Path) -> Path:
    """Return a file itself, or the queries of a BEIR folder."""
    return _named(path, "queries")[0] if is_beir(path) else path


def corpus_file(path: Path) -> Path:
    """Return the corpus of a BEIR folder. Raises InputError if it has none."""
    if not (found := _named(path, "corpus")):
        raise InputError(f"{path} has queries and judgements but no corpus.jsonl. Name the corpus with --corpus.")
    return found[0]


def qrels_file(path: Path, split: str) -> Path:
    """Return a file itself, or the judgements of a split of a BEIR folder.

    If the folder has judgements of one split alone, they are taken.

    Raises:
        InputError: the folder has several splits, and not this one.
    """
    if not path.is_dir():
        return path
    folder = path / "qrels" if (path / "qrels").is_dir() else path
    files = sorted(file for file in folder.iterdir() if {*file.suffixes} & QRELS_ENDINGS and file.is_file())
    found = [file for file in files if file.name.partition(".")[0] == split] or files
    if len(found) != 1:
        names = ", ".join(file.name for file in files) or f"no file that ends in {', '.join(sorted(QRELS_ENDINGS))}"
        raise InputError(f"{folder} holds {names}, and judgements of one split are needed. Name the file.")
    say(f"{path}: judgements of {found[0].name}")
    return found[0]


def _named(folder: Path, name: str) -> list[Path]:
    """The file of this name, compressed or not."""
    return sorted(file for file in folder.glob(f"{name}.jsonl*") if file.is_file())
