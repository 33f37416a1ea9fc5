"""Read corpus files and folders as documents, in order, each id once, and every page counted.

`documents` reads them in one process, and `CorpusFiles` lets others read some of them (work_units.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from realmctl.corpus.corpus_file import CorpusFile, corpus_files, written
from realmctl.corpus.document import Document, Dropped, Found, SkippedPage
from realmctl.corpus.formats.detect import Format, format_of
from realmctl.corpus.settings import CorpusSettings
from realmctl.corpus.unique_ids import UniqueIds
from realmctl.errors import InputError
from realmctl.log import say, warn

NO_PAGES = frozenset({"redirect", "namespace"})
"""Reasons that the dump itself gives: such a page holds no text of its own, or is none of the encyclopedia."""
WARNED_SHARE = 0.03
EXAMPLES = 3
PREVIEW_SECONDS = 10.0


@dataclass
class PageCounts:
    """How many pages were read, and how many were dropped by reason, with the first ids. All others were passed on."""

    pages: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def drop(self, reason: str, identity: str) -> None:
        """Count a page that is dropped."""
        self.dropped[reason] += 1
        if len(first := self.examples.setdefault(reason, [])) < EXAMPLES:
            first.append(identity)

    def add(self, further: PageCounts) -> None:
        """Add the counts of pages that come after these."""
        self.pages += further.pages
        self.dropped.update(further.dropped)
        for reason, found in further.examples.items():
            self.examples[reason] = [*self.examples.get(reason, []), *found][:EXAMPLES]

    def warn(self) -> None:
        """Warn about each reason for which more than 3 % of the pages were dropped, redirects and other namespaces aside."""
        among = self.pages - sum(self.dropped[reason] for reason in NO_PAGES)
        for reason, count in sorted(self.dropped.items()):
            if reason not in NO_PAGES and count > WARNED_SHARE * among:
                first = ", ".join(map(repr, self.examples[reason]))
                more = ", ..." if count > EXAMPLES else ""
                warn(f"{count} of {among} documents are left out, reason: {reason} (ids {first}{more}).")


def kept(found: Iterable[Found], counts: PageCounts) -> Iterator[Document | SkippedPage]:
    """Count all pages, and yield those that their reader kept, unless they have neither a text nor a title."""
    for page in found:
        counts.pages += 1
        if isinstance(page, Dropped):
            counts.drop(page.reason, page.id)
        elif isinstance(page, Document) and not (page.text.strip() or page.title.strip()):
            counts.drop("empty", page.id)
        else:
            yield page


class CorpusFiles:
    """The files of a corpus while they are read: their formats, the ids so far, and how many pages there were.

    Args:
        paths: corpus files and folders.
        settings: how they are read.
        counts: receives the number of pages read, and of pages dropped by reason.
        before: an earlier pass over the same files. This one does not say their formats again.

    Attributes:
        files: the files that are read.
        bad: the files that cannot be read, if the settings say that they are skipped. Each counts as a page that is set aside.
    """

    def __init__(
        self, paths: Iterable[Path], settings: CorpusSettings, counts: PageCounts, before: CorpusFiles | None = None
    ) -> None:
        self.paths, self.counts, self.say_formats = tuple(paths), counts, before is None
        self.files: list[CorpusFile] = before.files if before else corpus_files(self.paths, settings)
        self.bad: list[SkippedPage] = before.bad if before else []
        if settings.bad_files == "skip" and before is None:
            found = [(file, _why_unreadable(file)) for file in self.files]
            self.files = [file for file, why in found if not why]
            self.bad = [SkippedPage(file.name, "", why, str(file.path)) for file, why in found if why]
        counts.pages += len(self.bad)
        self._seen, self._found, self._said = UniqueIds(), 0, ""

    def documents(self) -> Iterator[Document | SkippedPage]:
        """Yield the pages to keep of all files, after the files that are skipped."""
        yield from self.bad
        for file in self.files:
            yield from self.read(file)
        self.finish()

    def read(self, file: CorpusFile, kind: Format | None = None) -> Iterator[Document | SkippedPage]:
        """Yield the pages to keep of a file, read by `kind` or by its format.

        Raises InputError for a damaged file, a bad line, or an id that comes twice.
        """
        kind = kind or format_of(file)
        self.say_format(file, kind.name)
        for page in kept(kind.read(file), self.counts):
            self.note(page.id, page.where)
            yield page

    def say_format(self, file: CorpusFile, name: str) -> None:
        """Say the format of a file where it is not that of the file before."""
        if self.say_formats and name != self._said:
            say(f"{file.path}: {name}")
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
    yield from CorpusFiles(paths, settings, counts or PageCounts()).documents()


def preview(paths: Iterable[Path], settings: CorpusSettings, seconds: float = PREVIEW_SECONDS) -> dict[str, str]:
    """Return what is in a corpus, for `--dry-run`: formats, number of documents, and the first ids with their titles.

    The whole corpus is read, but no longer than `seconds`; then it is said that there are more.
    """
    corpus, formats = CorpusFiles(paths, settings, PageCounts()), Counter[str]()

    def pages() -> Iterator[Document | SkippedPage]:
        for file in corpus.files:
            kind = format_of(file)
            formats[kind.name] += 1
            yield from corpus.read(file, kind)

    first, number, more, end = list[str](), 0, "", time.monotonic() + seconds
    for page in pages():
        if time.monotonic() > end:
            more = " and more"
            break
        number += 1
        if len(first) < EXAMPLES:
            first.append(f"{page.id} {page.title!r}")
    dropped = ", ".join(f"{count} {reason}" for reason, count in sorted(corpus.counts.dropped.items()))
    return {
        "format": ", ".join(f"{name} ({count} files)" if count > 1 else name for name, count in formats.items()),
        "documents": f"{number}{more}" + (f", left out: {dropped}" if dropped else ""),
        "first": "; ".join(first) or "none",
    }


def _why_unreadable(file: CorpusFile) -> str:
    """Read a file to its end. Return what is wrong with it; empty if nothing is."""
    if file.problem:
        return f"the file cannot be read: it is {file.problem}"
    try:
        for _ in format_of(file).read(file):
            pass
    except InputError as error:
        return f"the file cannot be read: {written(str(error))}"
    return ""
