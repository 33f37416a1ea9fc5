"""Recurring spans: runs of words that stand in several blocks of one document (Ram et al., NAACL 2022, section 3.1).

A span has 1 to `LONGEST` words of letters or digits. It begins and ends with a rare word, where the authors exclude an English
list of stop words. A span is left out where each of its places lies within a place of one longer recurring span.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.tokens.tokenizer import Tokenizer

LONGEST = 10
"""Longest span in words (public code oriram/spider, the default of --max_span_length; its loop stops one short)."""
MOST_COMMON = 0.2
"""A word in more than this share of the documents is common.

The value is this project's choice; if it changes, the version of `spider-init` must increase.
"""
NO_WORD = -1

SpanPlaces = tuple[tuple[int, int, int], ...]
"""The places of a span, in order: (number of the block in its document, first wordpiece, wordpiece after the last)."""
Gram = tuple[int, ...]


@dataclass(frozen=True)
class BlockWords:
    """The words of a block. ids: a number for each different word, or `NO_WORD`. starts: their first wordpieces, and the end."""

    ids: list[int]
    starts: list[int]

    def without_last(self) -> BlockWords:
        """Return all words but the last."""
        return BlockWords(self.ids[:-1], self.starts[:-1] or [0])


class WordTable:
    """Numbers the words of a corpus, and knows which ones are common."""

    def __init__(self, corpus: Corpus, words: Tokenizer, documents: Sequence[NDArray[np.int64]]) -> None:
        self._continues_V = words.continues
        pieces = [(number, piece.removeprefix("##")) for number, piece in enumerate(words.tokens_of(range(words.rows)))]
        self._written_V = np.zeros(len(self._continues_V), dtype=bool)
        # a blank alone begins a word, and U+FFFD is a part of a character
        written = (number for number, piece in pieces if not piece or piece.replace("\ufffd", "a").isalnum())
        self._written_V[[*written]] = True
        self._ids: dict[bytes, int] = {}
        held: dict[int, int] = defaultdict(int)
        for rows in documents:
            for word in {word for row in rows for word in self.words(corpus.tokens(int(row))).ids} - {NO_WORD}:
                held[word] += 1
        most = max(2, int(MOST_COMMON * len(documents)))
        self.common = frozenset(word for word, count in held.items() if count > most)

    def words(self, tokens: TokenIds) -> BlockWords:
        """Return the words of a block. A wordpiece that continues a word belongs to it."""
        starts = np.flatnonzero(~self._continues_V[tokens]).tolist()
        if len(tokens) and (not starts or starts[0] != 0):
            starts.insert(0, 0)
        bounds = [*starts, len(tokens)]
        written = self._written_V[tokens]
        ids = [
            self._ids.setdefault(tokens[start:stop].tobytes(), len(self._ids)) if written[start:stop].all() else NO_WORD
            for start, stop in pairwise(bounds)
        ]
        return BlockWords(ids, bounds)


def recurring_spans(blocks: Sequence[BlockWords], common: frozenset[int], longest: int = LONGEST) -> list[SpanPlaces]:
    """Return the places of each recurring span of a document, in order of their first places.

    longest: the most words of a span.
    """
    found = _longest_alone(_recurring(blocks, common, longest))
    spans = [
        tuple((block, blocks[block].starts[first], blocks[block].starts[first + length]) for block, first in at)
        for length, at in found
    ]
    return sorted(spans)


def _recurring(
    blocks: Sequence[BlockWords], common: frozenset[int], longest: int
) -> list[tuple[int, list[tuple[int, int]]]]:
    """(length, places as (block, first word)) of the spans in two blocks or more that begin and end with a rare word.

    A longer span recurs only where the span without its last word recurs, so few are looked at.
    """
    places: dict[Gram, list[tuple[int, int]]] = defaultdict(list)
    for block, words in enumerate(blocks):
        for first, word in enumerate(words.ids):
            if word != NO_WORD and word not in common:
                places[(word,)].append((block, first))
    found = []
    for length in range(1, longest + 1):
        recurring = {gram: at for gram, at in places.items() if at[0][0] != at[-1][0]}
        found += [(length, at) for gram, at in recurring.items() if gram[-1] not in common]
        places = _one_word_longer(recurring, blocks, length)
    return found


def _one_word_longer(
    recurring: Mapping[Gram, list[tuple[int, int]]], blocks: Sequence[BlockWords], length: int
) -> dict[Gram, list[tuple[int, int]]]:
    longer: dict[Gram, list[tuple[int, int]]] = defaultdict(list)
    for gram, at in recurring.items():
        for block, first in at:
            ids = blocks[block].ids
            if first + length < len(ids) and ids[first + length] != NO_WORD:
                longer[(*gram, ids[first + length])].append((block, first))
    return longer


def _longest_alone(found: list[tuple[int, list[tuple[int, int]]]]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Leave out each span whose places all lie within places of one longer span."""
    starting: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (_, at) in enumerate(found):
        for place in at:
            starting[place].append(number)

    def around(length: int, block: int, first: int) -> set[int]:
        """The longer spans with a place around this one."""
        return {
            number
            for start in range(first + length - LONGEST, first + 1)
            for number in starting.get((block, start), ())
            if found[number][0] > length and start + found[number][0] >= first + length
        }

    return [(length, at) for length, at in found if not set.intersection(*(around(length, *place) for place in at))]
