"""Read corpus files and folders as documents, in order, each id once, and every page counted.

`documents` reads them in one process, and `CorpusFiles` lets others read some of them (work_units.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from realmctl.corpus.corpus_file import CorpusFile, corpus_files
from realmctl.corpus.document import Document, Dropped, Found, SkippedPage
from realmctl.corpus.formats.detect import Format, format_of
from realmctl.corpus.settings import CorpusSettings
from realmctl.corpus.unique_ids import UniqueIds
from realmctl.errors import InputError
from realmctl.log import say, warn

NO_PAGES = frozenset({"redirect", "namespace"})
"""Reasons that the dump itself gives: such a page holds no text of its own, or is none of the encyclopedia."""
MAX_DROPPED_SHARE = 0.03
EXAMPLES = 3


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
            if reason not in NO_PAGES and count > MAX_DROPPED_SHARE * among:
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
        say_formats: say the format of the files. A second pass over them need not.
    """

    def __init__(
        self, paths: Iterable[Path], settings: CorpusSettings, counts: PageCounts, say_formats: bool = True
    ) -> None:
        self.paths, self.counts, self.say_formats = tuple(paths), counts, say_formats
        self.files = corpus_files(self.paths, settings)
        self._seen, self._found, self._said = UniqueIds(), 0, ""

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
    corpus = CorpusFiles(paths, settings, counts or PageCounts())
    for file in corpus.files:
        yield from corpus.read(file)
    corpus.finish()
