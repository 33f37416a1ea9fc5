"""How far the embeddings of blocks have moved, measured on a sample of rows. Legend: C rows, D dimension."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.index.protocol import RowIds


def evenly_spaced(count: int, most: int) -> RowIds:
    """Return at most `most` rows of an index of `count` blocks, evenly spaced."""
    return np.linspace(0, count - 1, min(most, count)).round().astype(np.int64)


def drift(stale_CD: NDArray[np.floating], fresh_CD: NDArray[np.floating]) -> float:
    """Return 1 minus the mean cosine of the old and the new embedding of a block: 0 for no drift, about 1 for unrelated ones."""
    stale_CD, fresh_CD = stale_CD.astype(np.float64), fresh_CD.astype(np.float64)
    norm_C = np.linalg.norm(stale_CD, axis=1) * np.linalg.norm(fresh_CD, axis=1)
    cosine_C = (stale_CD * fresh_CD).sum(1) / np.maximum(norm_C, np.finfo(np.float64).tiny)
    return float(1.0 - cosine_C.mean())
