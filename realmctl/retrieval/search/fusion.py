"""Reciprocal rank fusion: several rankings of the same blocks become one (Cormack, Clarke and Büttcher, SIGIR 2009).

The score of a block is the sum of 1 / (k + rank) over the rankings that hold it; the first rank is 1. Scores of the
rankings themselves do not count, so they need no common scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from realmctl.index.protocol import RowIds, Scores

RRF_K = 60
"""The constant of the paper."""


def reciprocal_rank_fusion(rankings: Sequence[RowIds], k: float = RRF_K) -> tuple[Scores, RowIds]:
    """Return scores float32 [n] and rows int64 [n] of one query, best first; equal scores are ordered by rising row.

    rankings: rows int64 [m] of each ranking, best first and without repetition; n is the number of different rows.
    """
    rows, place = np.unique(np.concatenate(rankings), return_inverse=True)
    scores: NDArray[np.float64] = np.zeros(len(rows))
    reciprocals = [1 / (k + np.arange(1, len(ranking) + 1)) for ranking in rankings]
    np.add.at(scores, place, np.concatenate(reciprocals))
    order = np.lexsort((rows, -scores))
    return scores[order].astype(np.float32), rows[order].astype(np.int64)
