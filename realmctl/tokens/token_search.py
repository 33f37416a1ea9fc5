"""Find a run of wordpieces in other wordpieces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def occurrences(tokens: NDArray[np.integer], needle: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the positions where `needle` begins in `tokens`, int64. An empty needle occurs nowhere."""
    if not 0 < len(needle) <= len(tokens):
        return np.empty(0, dtype=np.int64)
    places: NDArray[np.int64] = (tokens[: len(tokens) - len(needle) + 1] == needle[0]).nonzero()[0]
    for offset in range(1, len(needle)):
        if not len(places):
            break
        places = places[tokens[places + offset] == needle[offset]]
    return places
