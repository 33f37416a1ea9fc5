"""What pre-training hides: a salient span, or for comparison a random span or random wordpieces (paper, table 2)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from realmctl.retrieval.queries import Queries

Masking = Literal["salient", "random-span", "random-uniform"]
MASKINGS = get_args(Masking)
UNIFORM_RATE = 0.15


def places(queries: Queries, span: int, masking: Masking, most: int, rng: np.random.Generator) -> tuple[int, NDArray[np.int64]]:
    """The sentence of salient span number `span`, and the wordpieces to hide in it, ascending, at most `most`.

    `random-span` hides as many wordpieces as the salient span has, elsewhere; `random-uniform` 15 % of the sentence.
    """
    sentence, first, stop = (int(value) for value in queries.spans[span, :3])
    width = stop - first
    length = len(queries.tokens(sentence))
    if masking == "random-span":
        first = int(rng.integers(max(1, length - width + 1)))
        return sentence, np.arange(first, min(first + width, length))[:most]
    if masking == "random-uniform":
        count = min(most, max(1, round(UNIFORM_RATE * length)))
        return sentence, np.sort(rng.choice(length, min(count, length), replace=False))
    return sentence, np.arange(first, stop)[:most]
