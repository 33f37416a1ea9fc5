"""Corpora: files and folders in, documents out.

`raw_documents` reads (one process, in order), `document` turns one raw document into prose (many processes,
whoever gets it). Nothing is lost in silence: what is dropped is counted by its reason, what hangs or bursts
is listed.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from realmctl.errors import InputError
from realmctl.log import say, warn
from realmctl.text.corpus.deadline import DeadlineError, deadline
from realmctl.text.corpus.detect_format import FormatName, sniff
from realmctl.text.corpus.formats import PageCounts, RawDocument
from realmctl.text.corpus.unique_ids import UniqueIds
from realmctl.text.wiki import wikitext
from realmctl.text.wiki.wikitext import AnchorOffsets

PAGE_SECONDS = 10.0
LINK = re.compile(r'<a href="([^"<>]*)"[^<>]*>([^<]*)</a>|</?a\b[^<>]*>')


@dataclass(frozen=True, slots=True)
class Document:
    """A source page as prose. `anchors`: (start, end, target title), character offsets into `text`."""

    id: str
    title: str
    text: str
    anchors: list[AnchorOffsets]


@dataclass(frozen=True, slots=True)
class SkippedPage:
    """A page set aside, and why."""

    id: str
    title: str
    reason: str


def raw_documents(
    paths: Iterable[Path], tally: PageCounts, keep_lists: bool = False, format_name: FormatName = "auto"
) -> Iterator[RawDocument]:
    """Every document of these files and folders (walked in sorted order), filtered and counted in `tally`.

    Raises InputError for a damaged file, a bad line, an id that comes twice, and a corpus without documents.
    """
    seen, found = UniqueIds(), 0
    for path in paths:
        said = ""
        for file in _files(path):
            kind = sniff(file, format_name)
            if kind.name != said:
                say(f"{file}: {kind.name}")
                said = kind.name
            for raw in kind.read(file, tally, keep_lists):
                seen.add(raw.id, raw.where)
                found += 1
                yield raw
    seen.settle()
    if not found:
        names = ", ".join(map(str, paths))
        raise InputError(
            f"{names}: no document in it ({tally.pages} pages read, dropped: "
            f"{dict(tally.dropped) or 'none'}). Name a corpus with articles."
        )


def _files(path: Path) -> list[Path]:
    """A file itself, or all files below a folder in sorted order, hidden ones left out."""
    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"{path} is not a file or a folder, so it cannot be read as a corpus. Check the path.")
        return [path]
    found = []
    for below, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for file in (Path(below) / name for name in names if not name.startswith(".")):
            if file.exists() and not file.is_file():
                warn(f"{file} is a pipe, a socket or a device, and is not read.")
            else:
                found.append(file)
    corpus = [file for file in found if file.parent == path and file.name.partition(".")[0] == "corpus"]
    names = {file.relative_to(path).parts[0].partition(".")[0] for file in found}
    if corpus and names & {"queries", "qrels"}:
        say(f"{path}: a BEIR folder, of which only the corpus is read")
        return corpus
    if not found:
        raise InputError(f"{path} is a folder without files. Name one with corpus files in it.")
    return sorted(found, key=lambda file: file.relative_to(path).parts)


def document(raw: RawDocument, seconds: float = PAGE_SECONDS) -> Document | SkippedPage:
    """The prose of a raw document, or why there is none: too long to read, or too slow to clean."""
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
    text = raw.text.replace("\r\n", "\n")
    return _linked(raw.title, text) if raw.markup == "wikiextractor" else wikitext.Prose(text, [])


def _linked(title: str, text: str) -> wikitext.Prose:
    """WikiExtractor's text: entities unescaped, <a href="Target">label</a> as anchors, the title's own line
    dropped.
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
            anchors.append((start, length, _target(match[1])))
    return wikitext.Prose("".join([*out, text[done:]]), anchors)


def _target(href: str) -> str:
    title = unquote(href).partition("#")[0].replace("_", " ").strip()
    return title[:1].upper() + title[1:]
