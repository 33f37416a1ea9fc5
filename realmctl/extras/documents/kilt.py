"""Read KILT's knowledge source (github.com/facebookresearch/KILT): JSON lines, one Wikipedia page a line.

`text` is a list of paragraphs, the first of which is the title. Headings begin with `Section::::`, list items with
`BULLET::::`. `anchors` are links with the number of their paragraph and character offsets in it.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Link
from realmctl.corpus.formats.detect import first_object
from realmctl.corpus.formats.format import HEAD_BYTES
from realmctl.corpus.formats.records import FieldNames, document_of, encodable
from realmctl.corpus.formats.wikipedia import link_target
from realmctl.errors import InputError
from realmctl.inputs.rows import json_lines

HEADING = "Section::::"
BULLET = re.compile(r"\s*(?:BULLET::::(?:[-*#:;]|\d+\.)?\s*)?")


def is_kilt(file: CorpusFile, start: bytes) -> bool:
    """Whether a file is KILT's knowledge source: its first object has a title of Wikipedia, and its text is a list."""
    is_whole = b"\n" in start or len(start) < HEAD_BYTES // 2
    if start[:1] != b"{" or (is_whole and b'"wikipedia_title"' not in start) or FieldNames.of(file.settings).named:
        return False
    try:
        record = first_object(file.path, start)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "wikipedia_title" in record and isinstance(record.get("text"), list)


def read_kilt(file: CorpusFile) -> Iterator[Document]:
    """Yield the pages of a knowledge source with their links. Headings are dropped."""
    names = FieldNames(kept=file.settings.kept_fields)
    for row in json_lines(file.path):
        paragraphs, links = row.fields.get("text"), row.fields.get("anchors") or []
        if not isinstance(paragraphs, list) or not all(isinstance(paragraph, str) for paragraph in paragraphs):
            raise InputError(
                f"{row.where}: text is not a list of paragraphs, as KILT has it. Correct or remove the line."
            )
        if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
            raise InputError(
                f"{row.where}: anchors is not a list of objects, as KILT has it. Correct or remove the line."
            )
        page = document_of(row._replace(fields={**row.fields, "text": ""}), f"{file.name}-{row.number}", names)
        text, found = _joined(paragraphs, links, page.title)
        yield dataclasses.replace(page, text=encodable(text, row.where), links=tuple(found))


def _joined(paragraphs: Sequence[str], links: Sequence[Mapping[str, object]], title: str) -> tuple[str, list[Link]]:
    """Return the prose, a paragraph a line, and the links with offsets in it. A link whose offsets do not hold its
    text is left out.
    """
    by_paragraph = defaultdict[Any, list[Mapping[str, Any]]](list)
    for link in links:
        if type(link.get("paragraph_id")) is int:
            by_paragraph[link["paragraph_id"]].append(link)
    lines, anchors, length = list[str](), list[Link](), 0
    for number, paragraph in enumerate(paragraphs):
        begin = BULLET.match(paragraph).end()  # type: ignore[union-attr]
        line = paragraph[begin:].rstrip()
        if not line or line.startswith(HEADING) or (number == 0 and line == title):
            continue
        for start, end, target in _links(paragraph, by_paragraph[number]):
            start, end = length + start - begin, length + end - begin
            if start >= (anchors[-1][1] if anchors else length) and end <= length + len(line):
                anchors.append((start, end, target))
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines), anchors


def _links(paragraph: str, links: Sequence[Mapping[str, object]]) -> list[Link]:
    """Return the links whose offsets hold their text, in order."""
    found = list[Link]()
    for link in links:
        match link:
            case {"start": int(start), "end": int(end), "text": str(text), "href": str(href)} if 0 <= start < end:
                if paragraph[start:end] == text:
                    found.append((start, end, link_target(href)))
    return sorted(found)
