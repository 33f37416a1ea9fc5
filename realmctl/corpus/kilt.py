"""Read KILT's knowledge source (github.com/facebookresearch/KILT): JSON lines, one Wikipedia page a line.

`text` is a list of paragraphs, the first of which is the title. Headings begin with `Section::::`, list items with
`BULLET::::`. `anchors` are links with the number of their paragraph and character offsets in it.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from realmctl.corpus.formats import PageCounts, RawDocument, encodable, from_record, kept, link_target
from realmctl.corpus.wiki.wikitext import AnchorOffsets
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.json_lines import json_object

HEADING = "Section::::"
BULLET = re.compile(r"\s*(?:BULLET::::(?:[-*#:;]|\d+\.)?\s*)?")


def is_kilt(record: Mapping[str, Any]) -> bool:
    """Return whether this is a page of KILT's knowledge source."""
    return "wikipedia_title" in record and isinstance(record.get("text"), list)


def read_kilt(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the pages of a knowledge source, with their links as anchors. Headings are dropped."""
    for number, line in streams.lines(path):
        if line.strip():
            where = f"{path}:{number}"
            yield from kept(_page(json_object(line, where), f"{path.name}-{number}", where), counts, keep_lists)


def _page(record: Mapping[str, Any], substitute: str, where: str) -> RawDocument:
    paragraphs, links = record.get("text"), record.get("anchors") or []
    if not isinstance(paragraphs, list) or not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise InputError(f"{where}: text is not a list of paragraphs, as KILT has it. Correct or remove the line.")
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        raise InputError(f"{where}: anchors is not a list of objects, as KILT has it. Correct or remove the line.")
    named = from_record({**record, "text": ""}, substitute, where)
    text, anchors = _joined(paragraphs, links, named.title)
    return dataclasses.replace(named, text=encodable(text, where), anchors=tuple(anchors))


def _joined(
    paragraphs: Sequence[str], links: Sequence[Mapping[str, Any]], title: str
) -> tuple[str, list[AnchorOffsets]]:
    """Return the prose, a paragraph a line, and the links with offsets in it. A link whose offsets do not hold its
    text is left out.
    """
    by_paragraph = defaultdict[Any, list[Mapping[str, Any]]](list)
    for link in links:
        if type(link.get("paragraph_id")) is int:
            by_paragraph[link["paragraph_id"]].append(link)
    lines, anchors, length = list[str](), list[AnchorOffsets](), 0
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


def _links(paragraph: str, links: Sequence[Mapping[str, Any]]) -> list[AnchorOffsets]:
    """Return the links whose offsets hold their text, in order."""
    found = list[AnchorOffsets]()
    for link in links:
        match link:
            case {"start": int(start), "end": int(end), "text": str(text), "href": str(href)} if 0 <= start < end:
                if paragraph[start:end] == text:
                    found.append((start, end, link_target(href)))
    return sorted(found)
