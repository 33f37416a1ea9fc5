"""Read corpus files and folders as documents.

`raw_documents` reads the files in one process and in order. `document` turns a raw document into prose; workers call
it. Every dropped document is counted with its reason, and every skipped page is listed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from realmctl.errors import InputError
from realmctl.log import say
from realmctl.text.corpus.corpus_files import corpus_files
from realmctl.text.corpus.deadline import DeadlineError, deadline
from realmctl.text.corpus.detect_format import FormatName, format_of
from realmctl.text.corpus.formats import KNOWN_NAMES, FieldNames, PageCounts, RawDocument, link_target
from realmctl.text.corpus.unique_ids import UniqueIds
from realmctl.text.wiki import wikitext
from realmctl.text.wiki.wikitext import AnchorOffsets

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


def raw_documents(
    paths: Iterable[Path],
    counts: PageCounts,
    keep_lists: bool = False,
    format_name: FormatName = "auto",
    names: FieldNames = KNOWN_NAMES,
) -> Iterator[RawDocument]:
    """Yield the documents of these files and folders in sorted order, without list and disambiguation pages.

    Args:
        paths: corpus files and folders.
        counts: receives the number of pages read, and of pages dropped by reason.
        keep_lists: keep pages titled "List of ...".
        format_name: format of all files; "auto" detects it from each file's first bytes.
        names: fields of JSON lines and tables that the user named.

    Raises:
        InputError: a damaged file, a bad line, an id that comes twice, or a corpus without documents.
    """
    seen, found, corpus = UniqueIds(), 0, list(paths)
    for path in corpus:
        said = ""
        for file in corpus_files(path):
            kind = format_of(file, format_name, names)
            if kind.name != said:
                say(f"{file}: {kind.name}")
                said = kind.name
            for raw in kind.read(file, counts, keep_lists):
                seen.add(raw.id, raw.where)
                found += 1
                yield raw
    seen.settle()
    if not found:
        raise InputError(
            f"{', '.join(map(str, corpus))}: this corpus has no document ({counts.pages} pages read, dropped: "
            f"{dict(counts.dropped) or 'none'}). Name a corpus with articles."
        )


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
