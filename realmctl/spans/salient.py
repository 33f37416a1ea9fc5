"""Salient spans: the names and dates that a query masks and the reader recovers.

REALM (arXiv 2002.08909, section 3.4) masks one complete named entity or date in a sentence. This file defines a span
and a tagger, and the rules that make a tagger's spans maskable. taggers.py finds names, dates.py finds dates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from realmctl.corpus.blocks import Block

ENTITY = "ENTITY"
DATE = "DATE"


class SalientSpan(NamedTuple):
    """Character offsets `start` and `end` (exclusive) in a text, with the label of the span."""

    start: int
    end: int
    label: str


class Tagger(ABC):
    """What finds names in blocks. Another one is a class in a package of its own, by its entry point or room (`realmctl.taggers`), and `tag --tagger NAME`.

    language: The language of the blocks.
    """

    def __init__(self, language: str = "en") -> None:
        self.language = language

    @abstractmethod
    def tag(self, blocks: Sequence[Block]) -> list[list[SalientSpan]]:
        """Return the spans of each block, in any order. They may overlap or cross sentences."""


def resolve_overlaps(spans: Iterable[SalientSpan]) -> list[SalientSpan]:
    """Return spans without overlaps from left to right. The longest span is kept, then the leftmost."""
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
    """Assign each span to the sentence that contains it, with offsets from the start of the sentence.

    Returns:
        The spans of each sentence, and the number of spans that no sentence contains. These are dropped, as in the
        official realm/example_generator.py.
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


def covered_tokens(
    span: SalientSpan, token_offsets: Sequence[tuple[int, int]], joined: bool = False
) -> tuple[int, int] | None:
    """Return the first token and last token + 1 that lie within the span, or None if no token does.

    joined: whether the span is in a script that joins words. If no token lies within, those count that it touches: 서울 is masked by the
    token 서울은.

    `token_offsets` are the (start, end) characters of each wordpiece. As in the official realm/featurization.py, a
    wordpiece that is partly outside of the span is not masked.
    """
    inside = [i for i, (start, end) in enumerate(token_offsets) if span.start <= start < end <= span.end]
    if joined and not inside:
        inside = [i for i, (start, end) in enumerate(token_offsets) if start < span.end and end > span.start]
    return (inside[0], inside[-1] + 1) if inside else None
