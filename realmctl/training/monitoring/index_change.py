"""How much a refresh changes the index: the overlap of stale and fresh candidates, and the drift of the block embeddings.

Legend: B queries, K blocks of a query (-2: no block), C sampled rows, D dimension.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts.arrays import evenly_spaced
from realmctl.index.protocol import Index, RowIds
from realmctl.retrieval.search.candidates import ABSENT

SAMPLED_BLOCKS = 256
"""Number of blocks, evenly spaced over the corpus, whose embeddings are compared."""


def overlap(stale_BK: RowIds, fresh_BK: RowIds) -> float:
    """Return the share of the stale candidates that are fresh candidates of the same query too; 1 if there are none.

    Args:
        stale_BK: Candidates of some queries from the old index, int64 [B, K].
        fresh_BK: Candidates of the same query vectors from the new index.
    """
    there_BK = stale_BK != ABSENT
    kept_BK = (stale_BK[:, :, None] == fresh_BK[:, None, :]).any(2) & there_BK
    return float(kept_BK.sum()) / float(there_BK.sum()) if there_BK.any() else 1.0


def index_drift(stale: Index, fresh: Index) -> float:
    """Return the drift of the sampled blocks between two indexes of one corpus."""
    rows = evenly_spaced(fresh.count, SAMPLED_BLOCKS)
    return drift(stale.vectors(rows), fresh.vectors(rows))


def drift(stale_CD: NDArray[np.floating], fresh_CD: NDArray[np.floating]) -> float:
    """Return 1 minus the mean cosine of the old and the new embedding of a block: 0 for no drift, about 1 for unrelated ones."""
    stale_CD, fresh_CD = stale_CD.astype(np.float64), fresh_CD.astype(np.float64)
    norm_C = np.linalg.norm(stale_CD, axis=1) * np.linalg.norm(fresh_CD, axis=1)
    cosine_C = (stale_CD * fresh_CD).sum(1) / np.maximum(norm_C, np.finfo(np.float64).tiny)
    return float(1.0 - cosine_C.mean())
