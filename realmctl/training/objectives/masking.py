"""Masks of pre-training: a salient span or, as baselines, a random span or random wordpieces (REALM, table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from realmctl.spans.tagged_queries import TaggedQueries

Masking = Literal["salient", "random-span", "random-uniform"]
UNIFORM_RATE = 0.15
"""Share of the wordpieces that `random-uniform` hides: BERT's rate (Devlin et al. 2019, section 3.1). A change raises the
version of `pretrain`."""


@dataclass(frozen=True)
class MaskedQuery:
    """A sentence with hidden wordpieces replaced by [MASK], their positions (ascending) and the wordpieces themselves.

    Of a span with too many wordpieces only the first are in `places` and `targets`, as in the official code. All arrays
    are int64; `sentence` is the row of the sentence in the queries.
    """

    sentence: int
    tokens: NDArray[np.int64]
    places: NDArray[np.int64]
    targets: NDArray[np.int64]


def masked_query(
    queries: TaggedQueries, span: int, masking: Masking, *, most: int, room: int, mask_id: int, rng: np.random.Generator
) -> MaskedQuery:
    """Return the sentence of salient span number `span`, cut to `room` wordpieces, with at most `most` targets."""
    sentence, first, stop = (int(value) for value in queries.spans[span, :3])
    tokens = np.array(queries.tokens(sentence)[:room], dtype=np.int64)
    places = _places(len(tokens), first, stop, masking, most, rng)
    targets = tokens[places[:most]]
    tokens[places] = mask_id
    return MaskedQuery(sentence, tokens, places[:most], targets)


def _places(
    length: int, first: int, stop: int, masking: Masking, most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the positions to hide.

    `random-span` hides as many wordpieces as the salient span has, `random-uniform` 15 % of all.
    """
    if masking == "random-uniform":
        count = min(most, length, max(1, round(UNIFORM_RATE * length)))
        return np.sort(rng.choice(length, count, replace=False))
    if masking == "random-span":
        width = stop - first
        first = int(rng.integers(max(1, length - width + 1)))
        stop = first + width
    return np.arange(first, min(stop, length))
