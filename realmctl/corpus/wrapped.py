"""Plain text that is wrapped at a fixed width, as mails, licences and RFCs are: its lines become paragraphs again.

A text counts as wrapped by what a wrapping editor does: a line ends where the next word did not fit, often within a sentence. A list,
a poem, a table, a log or a sentence on each line does not look so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

WIDEST, NARROWEST = 120, 40
"""Columns that a text may be wrapped at."""
LONGER = 0.2
"""Share of the lines that may be longer than the width: an editor's lines are ragged, and addresses do not break."""
FAR_LONGER, TOO_LONG = 0.05, 1.25
"""Share of the lines that may have more than so many times the width."""
FEWEST = 6
"""Line ends within paragraphs that a text must have."""
LEAST_FULL, LEAST_GOING_ON = 0.8, 0.5
"""Of these line ends, the share at which the next word did not fit, and at which no sentence begins, as far as capitals say."""
RECORDS = 0.5
"""Share of the lines that begin as records, such as those of a log, above which a text is no wrapped one."""
RAGGED = 0.85
"""In a text that is wrapped, the part of its width at which a line is full."""
ITEM = re.compile(r"\s*(?:[-*+•·>#|=~_]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,5})[.)]\s)")
"""How an item of a list, a quotation, a heading or a rule begins."""
COLUMNS = re.compile(r"\S {3,}\S|\t")
RECORD = re.compile(r"\s*(?:[\[{<]|(?:\S+\s+){0,2}\S*\d)")
"""How a line of a log begins: with a bracket, or with a number among its first three words, as dates and times have."""
BROKEN_WORD = re.compile(r"\w-$")


def unwrapped(text: str) -> str:
    """Join the lines of a text that is wrapped at a fixed width; return another text as it is."""
    lines = text.split("\n")
    lengths = sorted(len(line.rstrip()) for line in lines if line.strip())
    if len(lengths) <= FEWEST:
        return text
    width = lengths[int((len(lengths) - 1) * (1 - LONGER))]
    if not NARROWEST <= width <= WIDEST or lengths[int((len(lengths) - 1) * (1 - FAR_LONGER))] > TOO_LONG * width:
        return text
    if _share(bool(RECORD.match(line)) for line in lines if line.strip()) > RECORDS:
        return text
    inside = [(line, following) for line, following in pairwise(lines) if _of_one_paragraph(line, following)]
    full = _share(_is_full(*pair, width) for pair in inside)
    going_on = _share(not following.lstrip()[0].isupper() for _, following in inside)
    if len(inside) < FEWEST or full < LEAST_FULL or going_on < LEAST_GOING_ON:
        return text
    joined = [lines[0]]
    for line, following in pairwise(lines):
        if _of_one_paragraph(line, following) and _is_full(line, following, RAGGED * width):
            former = joined[-1].rstrip()
            joined[-1] = former + ("" if BROKEN_WORD.search(former) else " ") + following.lstrip()
        else:
            joined.append(following)
    return "\n".join(joined)


def _of_one_paragraph(line: str, following: str) -> bool:
    """Whether the second line may go on with what the first says: both have words and no columns, and it begins no item."""
    if len(line.split()) < 3 or not following.strip() or ITEM.match(following):
        return False
    return not (COLUMNS.search(line) or COLUMNS.search(following))


def _is_full(line: str, following: str, width: float) -> bool:
    """Whether the first word of the following line did not fit into the line. Text without spaces has no words."""
    word = following.split(None, 1)[0]
    return len(line.rstrip()) + 1 + len(word) > width > 2 * len(word)


def _share(found: Iterable[bool]) -> float:
    values = [*found]
    return sum(values) / max(1, len(values))
