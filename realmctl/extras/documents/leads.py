"""Which lines of a document lead others: headings their sections, terms their definitions, names of columns the rows of their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from realmctl.corpus.document import Document, Lead
from realmctl.corpus.fields import NOTHING, Fields

LedLine = tuple[str, int, bool]
"""A line, the number of the first line behind what it leads, 0 if it leads nothing, and whether it is a heading."""


def led_lines(lines: Sequence[tuple[str, float]], led: Mapping[int, int]) -> list[LedLine]:
    """Lines with what they lead. A heading leads all up to the next one of its level or above it; what begins within a part ends in it.

    lines: Each with its level as a heading, of which the least is the highest, or 0. led: {number of a line: that of the first behind what it leads}.
    """
    until, sections, around = {**led}, list[tuple[float, int]](), list[int]()
    for number, (_, level) in enumerate([*lines, ("", float("-inf"))]):
        while level and sections and sections[-1][0] >= level:
            section = sections.pop()[1]
            until[section] = min(number, until.get(section, number))
        if level:
            sections.append((level, number))
    found = list[LedLine]()
    for number, (text, level) in enumerate(lines):
        while around and around[-1] <= number:
            around.pop()
        end = min(until.get(number, 0), around[-1] if around else len(lines))
        if end > number + 1:
            around.append(end)
        found.append((text, end if end > number + 1 or level else 0, level != 0))
    return found


def document_of_lines(
    name: str,
    title: str,
    lines: Sequence[LedLine],
    where: str,
    fields: Fields = NOTHING,
    pages: Sequence[int] = (),
) -> Document:
    """A document of these lines. A first line that is its title is left out. pages: the page on which each line begins, where that is known."""
    first = len(lines) > 1 and lines[0][0] == title
    lines = lines[first:]
    starts = [*accumulate((len(line) + 1 for line, *_ in lines), initial=0)]
    leads = tuple(
        Lead(starts[number], starts[number] + len(line), starts[until - first] - 1, is_heading)
        for number, (line, until, is_heading) in enumerate(lines)
        if until
    )
    return Document(
        name,
        title,
        "\n".join(line for line, *_ in lines),
        has_lines=True,
        leads=leads,
        fields=fields,
        pages=tuple(
            (start, page)
            for start, page, before in zip(starts, pages[first:], (0, *pages[first:]), strict=False)
            if page != before
        ),
        where=where,
    )
