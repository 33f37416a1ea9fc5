"""Read corpus files and folders as documents, in order, each id once, and every page counted.

`documents` reads them in one process, and `CorpusFiles` lets others read some of them (work_units.py).
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from realmctl.corpus.corpus_file import CorpusFile, corpus_files, written
from realmctl.corpus.document import Document, Dropped, Found, SkippedPage
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.formats.format import Format
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.log import say, warn

NO_PAGES = frozenset({"redirect", "namespace"})
"""Reasons that the dump itself gives: such a page holds no text of its own, or is none of the encyclopedia."""
WARNED_SHARE = 0.03
EXAMPLES = 3
PREVIEW_SECONDS = 10.0
RECENT_IDS = 2**17
"""About 300 bytes of memory each."""


@dataclass
class PageCounts:
    """How many pages were read, and how many were dropped by reason, with the first ids. All others were passed on.

    bad_files: how many of these are files that cannot be read. incomplete: for the files of which text is lost, how much.
    """

    pages: int = 0
    bad_files: int = 0
    incomplete: dict[str, str] = field(default_factory=dict)
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
        self.bad_files += further.bad_files
        self.incomplete |= further.incomplete
        self.dropped.update(further.dropped)
        for reason, found in further.examples.items():
            self.examples[reason] = [*self.examples.get(reason, []), *found][:EXAMPLES]

    def left_out(self) -> str:
        """How many are left out, by reason, such as `2 empty, 1 unreadable`; empty for none."""
        found = {**self.dropped, **({"unreadable": self.bad_files} if self.bad_files else {})}
        return ", ".join(f"{count} {reason}" for reason, count in sorted(found.items()))

    def tell(self) -> None:
        """Tell each reason for which pages were dropped, redirects and other namespaces aside; of more than 3 % of the pages it is a warning. Warn of
        each file of which text is lost.
        """
        for where, lost in self.incomplete.items():
            warn(f"{where}: its text lacks {lost}.")
        among = self.pages - sum(self.dropped[reason] for reason in NO_PAGES)
        for reason, count in sorted(self.dropped.items()):
            if reason not in NO_PAGES:
                first = ", ".join(map(repr, self.examples[reason]))
                more = ", ..." if count > EXAMPLES else ""
                tell = warn if count > WARNED_SHARE * among else say
                tell(f"left out: {count} of {among} documents, reason: {reason} (ids {first}{more}).")


def kept(file: CorpusFile, kind: Format, counts: PageCounts) -> Iterator[Document | SkippedPage]:
    """Count all pages of a file, and yield those that its reader kept, unless they have neither a text nor a title.

    Raises InputError for a file that cannot be read, unless such files are skipped.
    """
    for page in _pages_of(file, kind):
        counts.pages += 1
        counts.bad_files += isinstance(page, SkippedPage) and page.is_file
        if isinstance(page, Dropped):
            counts.drop(page.reason, page.id)
        elif isinstance(page, Document) and not (page.text.strip() or page.title.strip()):
            counts.drop("empty", page.id)
        else:
            if isinstance(page, Document) and page.lost:
                counts.incomplete[page.where] = page.lost
            yield page


def _pages_of(file: CorpusFile, kind: Format) -> Iterator[Found]:
    """Yield what a file holds. A bad one of one document is set aside where such files are skipped, and `CorpusFiles` has looked at the others."""
    is_judged = kind.is_one and file.settings.bad_files == "skip"
    try:
        with file.left_out_by_option():
            yield from [*kind.pages(file)] if is_judged else kind.pages(file)
    except InputError as error:
        if not is_judged:
            raise
        yield _aside(file, str(error))


class CorpusFiles:
    """The files of a corpus while they are read: their formats, the ids so far, and how many pages there were.

    Args:
        paths: corpus files and folders.
        settings: how they are read.
        counts: receives the number of pages read, and of pages dropped by reason.
        before: an earlier pass over the same files. This one does not say their formats again.

    Attributes:
        files: the files that are read.
        bad: the files of no format, and those of several documents that cannot be read, if the settings say that bad files are skipped. Each
            counts as a page that is set aside.
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
            self.bad = [_aside(file, why) for file, why in found if why]
        counts.pages += len(self.bad)
        counts.bad_files += len(self.bad)
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
        for page in kept(file, kind, self.counts):
            if not (isinstance(page, SkippedPage) and page.is_file):
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
            left = f", left out: {out}" if (out := self.counts.left_out()) else ""
            raise InputError(
                f"{names}: this corpus has no document ({self.counts.pages} read{left}). Name one with text."
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
    corpus, formats, start = CorpusFiles(paths, settings, PageCounts()), Counter[str](), time.monotonic()
    first, number, more = list[str](), 0, ""
    for file in corpus.files:
        if time.monotonic() > start + seconds / 2:
            break
        formats[format_of(file).name] += 1
    for page in chain.from_iterable(map(corpus.read, corpus.files)):
        if time.monotonic() > start + seconds:
            more = " and more"
            break
        if not (isinstance(page, SkippedPage) and page.is_file):
            number += 1
            first += [f"{page.id} {page.title!r}"] if len(first) < EXAMPLES else []
    left_out = corpus.counts.left_out()
    return {
        "format": "; ".join(f"{name} ({count} files)" if count > 1 else name for name, count in formats.items()),
        "documents": f"{number}{more}" + (f", left out: {left_out}" if left_out else ""),
        "first": "; ".join(first) or "none",
    }


def _why_unreadable(file: CorpusFile) -> str:
    """Return what is wrong with a file, which is read to its end if it has several documents; empty if nothing is."""
    if file.problem:
        return f"{file.path} is {file.problem}"
    try:
        kind = format_of(file)
        for _ in () if kind.is_one else kind.pages(file):
            pass
    except InputError as error:
        return str(error)
    return ""


def _aside(file: CorpusFile, why: str) -> SkippedPage:
    return SkippedPage(file.name, "", f"the file cannot be read: {written(why)}", str(file.path), is_file=True)


class UniqueIds:
    """The ids seen so far, in 8 bytes each, so that one that comes twice is refused. Block ids contain document ids.

    They are 64-bit hashes: the newest in a dictionary, with their places, older ones in sorted arrays.

    A repetition of an older id is found when the newest `recent` are compared with the arrays.
    """

    def __init__(self, recent: int = RECENT_IDS) -> None:
        self._limit = recent
        self._recent: dict[int, tuple[str, str]] = {}
        self._older: list[np.ndarray] = []

    def add(self, identity: str, where: str) -> None:
        """Add an id. Raises InputError naming `where` (file:line) if the id is among the newest."""
        key = int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")
        if key in self._recent:
            raise _twice(identity, where, self._recent[key][1])
        self._recent[key] = (identity, where)
        if len(self._recent) >= self._limit:
            self.settle()

    def settle(self) -> None:
        """Compare the newest ids with all older ones. Call this after the last id too."""
        keys = np.fromiter(self._recent, np.uint64, len(self._recent))
        for older in self._older:
            places = np.minimum(np.searchsorted(older, keys), len(older) - 1)
            for key in keys[older[places] == keys]:
                raise _twice(*self._recent[int(key)], "an earlier document")
        if len(keys):
            self._older.append(np.sort(keys))
        if len(self._older) >= 16:
            self._older = [np.sort(np.concatenate(self._older), kind="stable")]  # which merges sorted runs
        self._recent.clear()


def _twice(identity: str, where: str, before: str) -> InputError:
    return InputError(
        f"{where}: the document id {identity!r} is already used by {before}. Block ids contain document ids, so each "
        f"must be unique. Change one of the ids, or leave one file out."
    )
