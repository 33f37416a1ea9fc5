"""Read corpus files and folders as documents.

`raw_documents` reads the files in one process and in order, and `CorpusFiles` lets others read some of them. `document` turns a raw document into prose; workers call
it. Every dropped document is counted with its reason, and every skipped page is listed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from realmctl.corpus.corpus_files import corpus_files
from realmctl.corpus.detect_format import Format, FormatName, format_of
from realmctl.corpus.formats import KNOWN_NAMES, FieldNames, PageCounts, RawDocument, link_target
from realmctl.corpus.unique_ids import UniqueIds
from realmctl.corpus.wiki import wikitext
from realmctl.corpus.wiki.wikitext import AnchorOffsets
from realmctl.errors import InputError
from realmctl.execution.deadline import DeadlineError, deadline
from realmctl.log import say

PAGE_SECONDS = 10.0
LINK = re.compile(r'<a href="([^"<>]*)"[^<>]*>([^<]*)</a>|</?a\b[^<>]*>')


@dataclass(frozen=True, slots=True)
class Document:
    """A document as prose. `anchors` are (start, end, target title), with character offsets in `text`."""

    id: str
    title: str
    text: str
    anchors: list[AnchorOffsets]


@dataclass(frozen=True, slots=True)
class SkippedPage:
    """A page that was not cleaned, with the reason."""

    id: str
    title: str
    reason: str


class CorpusFiles:
    """The files of a corpus while they are read: their formats, the ids so far, and how many documents there were.

    Args:
        paths: corpus files and folders.
        counts: receives the number of pages read, and of pages dropped by reason.
        keep_lists: keep pages titled "List of ...".
        format_name: format of all files; "auto" detects it from each file's first bytes.
        names: fields of JSON lines and tables that the user named.
        say_formats: say the format of the files. A second pass over them need not.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        counts: PageCounts,
        keep_lists: bool = False,
        format_name: FormatName = "auto",
        names: FieldNames = KNOWN_NAMES,
        say_formats: bool = True,
    ) -> None:
        self.say_formats = say_formats
        self.paths, self.counts, self.keep_lists = tuple(paths), counts, keep_lists
        self.format_name, self.names = format_name, names
        self._seen, self._found, self._said = UniqueIds(), 0, ""

    def files(self) -> Iterator[tuple[Path, bool]]:
        """Yield each file in sorted order, and whether it lies in a folder that was named."""
        for path in self.paths:
            self._said = ""
            for file in corpus_files(path):
                yield file, file != path

    def format(self, file: Path) -> Format:
        """Return the format of a file. Raises InputError where it cannot be read."""
        return format_of(file, self.format_name, self.names)

    def read(self, file: Path, kind: Format | None = None) -> Iterator[RawDocument]:
        """Yield the documents of a file, read by `kind` or by its format.

        Raises InputError for a damaged file, a bad line, or an id that comes twice.
        """
        kind = kind or self.format(file)
        self.say_format(file, kind.name)
        for raw in kind.read(file, self.counts, self.keep_lists):
            self.note(raw.id, raw.where)
            yield raw

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


def raw_documents(
    paths: Iterable[Path],
    counts: PageCounts,
    keep_lists: bool = False,
    format_name: FormatName = "auto",
    names: FieldNames = KNOWN_NAMES,
) -> Iterator[RawDocument]:
    """Yield the documents of these files and folders in sorted order, without list and disambiguation pages.

    Arguments as of `CorpusFiles`.

    Raises:
        InputError: a damaged file, a bad line, an id that comes twice, or a corpus without documents.
    """
    corpus = CorpusFiles(paths, counts, keep_lists, format_name, names)
    for file, _ in corpus.files():
        yield from corpus.read(file)
    corpus.finish()


def document(raw: RawDocument, seconds: float = PAGE_SECONDS) -> Document | SkippedPage:
    """Return the prose of a raw document, or why it was skipped: its text is too long, or cleaning took too long."""
    if raw.fault:
        return SkippedPage(raw.id, raw.title, raw.fault)
    try:
        with deadline(seconds):
            prose = _prose(raw)
    except DeadlineError:
        return SkippedPage(raw.id, raw.title, f"not cleaned within {seconds:g} s")
    return Document(
        raw.id,
        html.unescape(raw.title) if raw.markup == "wikiextractor" else raw.title,
        prose.text,
        prose.anchors,
    )


def _prose(raw: RawDocument) -> wikitext.Prose:
    if raw.markup == "wikitext":
        return wikitext.prose(raw.text, raw.media)
    if raw.anchors:
        return wikitext.Prose(raw.text, list(raw.anchors))
    text = raw.text.replace("\r\n", "\n")
    return _linked(raw.title, text) if raw.markup == "wikiextractor" else wikitext.Prose(text, [])


def _linked(title: str, text: str) -> wikitext.Prose:
    """Clean WikiExtractor's text: unescape entities, turn <a href="Target">label</a> into anchors, drop the title
    line.
    """
    first, _, rest = text.partition("\n")
    text = html.unescape(rest.lstrip("\n") if first.strip() == title else text)
    out, anchors, length, done = list[str](), list[AnchorOffsets](), 0, 0
    for match in LINK.finditer(text):
        label = match[2] or ""
        before = text[done : match.start()]
        start, done = length + len(before), match.end()
        length = start + len(label)
        out += (before, label)
        if match[1] and label.strip():
            anchors.append((start, length, link_target(match[1])))
    return wikitext.Prose("".join([*out, text[done:]]), anchors)
