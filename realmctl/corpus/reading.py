"""Read corpus files and folders as documents, in order, each id once, and every page counted.

`documents` reads them in one process, and `CorpusFiles` lets others read some of them (work_units.py).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from realmctl.corpus.document import Document, Dropped, Found, SkippedPage
from realmctl.corpus.formats.detect import Format, format_of
from realmctl.corpus.settings import CorpusSettings
from realmctl.corpus.unique_ids import UniqueIds
from realmctl.corpus.wiki.dump import skip_title
from realmctl.errors import InputError
from realmctl.inputs.dataset_folders import data_files
from realmctl.log import say, warn


@dataclass
class PageCounts:
    """How many pages were read, and how many were dropped by reason. All others were passed on."""

    pages: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


def kept(found: Iterable[Found], counts: PageCounts, keep_lists: bool) -> Iterator[Document | SkippedPage]:
    """Count all pages, and yield those that their reader kept, unless they are empty or their title says that they are no articles."""
    for page in found:
        counts.pages += 1
        if isinstance(page, Dropped):
            reason: str | None = page.reason
        else:
            is_empty = isinstance(page, Document) and not page.text.strip()
            reason = skip_title(page.title, keep_lists) or ("empty" if is_empty else None)
        if reason is None:
            assert not isinstance(page, Dropped)
            yield page
        else:
            counts.dropped[reason] += 1


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


class CorpusFiles:
    """The files of a corpus while they are read: their formats, the ids so far, and how many pages there were.

    Args:
        paths: corpus files and folders.
        settings: how they are read.
        counts: receives the number of pages read, and of pages dropped by reason.
        say_formats: say the format of the files. A second pass over them need not.
    """

    def __init__(
        self, paths: Iterable[Path], settings: CorpusSettings, counts: PageCounts, say_formats: bool = True
    ) -> None:
        self.paths, self.settings, self.counts, self.say_formats = tuple(paths), settings, counts, say_formats
        self._seen, self._found, self._said = UniqueIds(), 0, ""

    def files(self) -> Iterator[tuple[Path, bool]]:
        """Yield each file in sorted order, and whether it lies in a folder that was named."""
        for path in self.paths:
            self._said = ""
            for file in corpus_files(path):
                yield file, file != path

    def read(self, file: Path, kind: Format | None = None) -> Iterator[Document | SkippedPage]:
        """Yield the pages to keep of a file, read by `kind` or by its format.

        Raises InputError for a damaged file, a bad line, or an id that comes twice.
        """
        kind = kind or format_of(file, self.settings)
        self.say_format(file, kind.name)
        for page in kept(kind.read(file), self.counts, self.settings.keep_lists):
            self.note(page.id, page.where)
            yield page

    def say_format(self, file: Path, name: str) -> None:
        """Say the format of a file where it is not that of the file before."""
        if self.say_formats and name != self._said:
            say(f"{file}: {name}")
            self._said = name

    def note(self, identity: str, where: str) -> None:
        """Count a document. Raises InputError if its id came before."""
        self._seen.add(identity, where)
        self._found += 1

    def finish(self) -> None:
        """Check the last ids, and that there was a document. Raises InputError."""
        self._seen.settle()
        if not self._found:
            names = ", ".join(map(str, self.paths))
            raise InputError(
                f"{names}: this corpus has no document ({self.counts.pages} pages read, dropped: "
                f"{dict(self.counts.dropped) or 'none'}). Name a corpus with articles."
            )


def documents(
    paths: Iterable[Path],
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008 (frozen)
    counts: PageCounts | None = None,
) -> Iterator[Document | SkippedPage]:
    """Yield the pages to keep of these files and folders in sorted order, as they are in their files (`document.cleaned`).

    Arguments as of `CorpusFiles`.

    Raises:
        InputError: a damaged file, a bad line, an id that comes twice, or a corpus without documents.
    """
    corpus = CorpusFiles(paths, settings, counts or PageCounts())
    for file, _ in corpus.files():
        yield from corpus.read(file)
    corpus.finish()
