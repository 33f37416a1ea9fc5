"""Salient spans: the names and dates that a query masks and the reader has to recover.

REALM section 3.4 (arXiv 2002.08909) masks named entities and dates, one whole span at a time, in one
sentence. Here is what a span is, what a tagger is given, and the rules that turn a tagger's raw finds into
maskable spans; the taggers themselves are in `taggers`, the date rules in `dates`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from realmctl.text.spans.passages import Passage

ENTITY = "ENTITY"
DATE = "DATE"


class SalientSpan(NamedTuple):
    """Characters `start` to `end` (exclusive) of some text."""

    start: int
    end: int
    label: str


class Tagger(Protocol):
    """Finds names in passages."""

    def tag(self, passages: Sequence[Passage]) -> list[list[SalientSpan]]:
        """For each passage the spans in its text, in any order; they may overlap or cross sentences."""
        ...


def resolve_overlaps(spans: Iterable[SalientSpan]) -> list[SalientSpan]:
    """Non-overlapping spans from left to right: the longest wins, then the leftmost; duplicates collapse."""
    kept: list[SalientSpan] = []  # always sorted by start
    for span in sorted(set(spans), key=lambda s: (s.start - s.end, s.start, s.label)):
        at = bisect_right(kept, span.start, key=lambda s: s.start)
        clear_of_left = at == 0 or kept[at - 1].end <= span.start
        clear_of_right = at == len(kept) or span.end <= kept[at].start
        if span.start < span.end and clear_of_left and clear_of_right:
            kept.insert(at, span)
    return kept


def split_by_sentence(
    spans: Iterable[SalientSpan], sentences: Sequence[tuple[int, int]]
) -> tuple[list[list[SalientSpan]], int]:
    """Give each span to the sentence that holds it, with offsets counted from that sentence's start.

    Returns the spans of every sentence, and how many spans were dropped because no single sentence holds them
    (as the official realm/example_generator.py drops them).
    """
    starts = [start for start, _ in sentences]
    held: list[list[SalientSpan]] = [[] for _ in sentences]
    crossing = 0
    for span in spans:
        row = bisect_right(starts, span.start) - 1
        if row < 0 or span.end > sentences[row][1]:
            crossing += 1
            continue
        held[row].append(SalientSpan(span.start - starts[row], span.end - starts[row], span.label))
    return held, crossing


def covered_tokens(span: SalientSpan, token_offsets: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """First token and last token + 1 among those whose characters lie within the span; None where none does.

    `token_offsets` are the (start, end) characters of each wordpiece, left to right. This is the official
    mask rule (realm/featurization.py): a wordpiece that sticks out of the span stays visible.
    """
    inside = [i for i, (start, end) in enumerate(token_offsets) if span.start <= start < end <= span.end]
    return (inside[0], inside[-1] + 1) if inside else None
