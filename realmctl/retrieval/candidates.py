"""From queries to candidates: the best blocks of the index, without the query's own block and without doubles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.index.protocol import Index

NULL = -1
SPARE = 8
"""Hits fetched beyond what is needed, to make up for own and double blocks that are left out."""


def candidates(
    index: Index, query_BD: NDArray[np.float32], own_uid_B: NDArray[np.uint64], uid: NDArray[np.uint64], count: int
) -> NDArray[np.int64]:
    """Rows of `count` candidates for each query, int64 [B, N]: the null document (-1) first, then blocks by rank.

    A block whose uid is the query's own, or that of a better hit, is left out (google-research realm/retrieval.py drops
    the first and throws the example away for the second). Places that the index cannot fill are -2.
    """
    _, ids_BK = index.search(query_BD, count - 1 + SPARE)
    rows_BN = np.full((len(query_BD), count), -2, dtype=np.int64)
    rows_BN[:, 0] = NULL
    for query, hits in enumerate(ids_BK):
        seen = {int(own_uid_B[query])}
        kept = [int(row) for row in hits if not (int(uid[row]) in seen or seen.add(int(uid[row])))]  # type: ignore[func-returns-value]
        best = kept[: count - 1]
        rows_BN[query, 1 : 1 + len(best)] = best
    return rows_BN
