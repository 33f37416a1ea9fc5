"""What pre-training hides: a salient span, or for comparison a random span or random wordpieces (paper, table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from realmctl.retrieval.tagged_queries import TaggedQueries

Masking = Literal["salient", "random-span", "random-uniform"]
UNIFORM_RATE = 0.15


@dataclass(frozen=True)
class MaskedQuery:
    """A sentence with its hidden wordpieces replaced by [MASK], where they were (ascending), and what they were.

    Of a span that is longer than a query may ask for, only the first are in `places` and `targets`, as officially.
    All int64; `sentence` is its row in the queries.
    """

    sentence: int
    tokens: NDArray[np.int64]
    places: NDArray[np.int64]
    targets: NDArray[np.int64]


def masked_query(
    queries: TaggedQueries, span: int, masking: Masking, *, most: int, room: int, mask_id: int, rng: np.random.Generator
) -> MaskedQuery:
    """The sentence of salient span number `span`, cut to `room` wordpieces, with at most `most` of them asked for."""
    sentence, first, stop = (int(value) for value in queries.spans[span, :3])
    tokens = np.array(queries.tokens(sentence)[:room], dtype=np.int64)
    places = _places(len(tokens), first, stop, masking, most, rng)
    targets = tokens[places[:most]]
    tokens[places] = mask_id
    return MaskedQuery(sentence, tokens, places[:most], targets)


def _places(
    length: int, first: int, stop: int, masking: Masking, most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """`random-span` hides as many wordpieces as the salient span has, elsewhere; `random-uniform` 15 % of the sentence."""
    if masking == "random-uniform":
        count = min(most, length, max(1, round(UNIFORM_RATE * length)))
        return np.sort(rng.choice(length, count, replace=False))
    if masking == "random-span":
        width = stop - first
        first = int(rng.integers(max(1, length - width + 1)))
        stop = first + width
    return np.arange(first, min(stop, length))
