"""Statistics of the candidates, and how much a refresh changes: candidates, and the embeddings of the blocks.

Legend: B queries, K blocks of a query, without the null document, C sampled rows, D dimension. A row number of -2 stands for a missing block.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts.arrays import evenly_spaced
from realmctl.index.protocol import Index, RowIds
from realmctl.retrieval.search.candidates import ABSENT

HUB_QUERIES = 256
"""Number of last queries over which `hub_share` is computed."""
WATCHED_QUERIES = 64
"""Number of fixed queries whose candidates are compared from index to index."""
SAMPLED_BLOCKS = 256
"""Number of blocks, evenly spaced over the corpus, whose embeddings are compared."""


class CandidateWatch:
    """Keeps the candidates of the last queries, and those of the fixed queries under the last index."""

    def __init__(self) -> None:
        self._last: RowIds = np.empty((0, 1), dtype=np.int64)
        self._watched: RowIds | None = None

    def add(self, rows_BK: RowIds) -> None:
        """Add the candidates of a batch, int64 [B, K]."""
        self._last = np.concatenate([self._last.reshape(-1, rows_BK.shape[1]), rows_BK])[-HUB_QUERIES:]

    def hub_share(self) -> dict[str, float]:
        """Return `hub_share`: the share of the last 256 queries that got the most common block. Empty before the 256th query."""
        if len(self._last) < HUB_QUERIES:
            return {}
        _, counts = np.unique(self._last[self._last != ABSENT], return_counts=True)
        return {"hub_share": float(counts.max(initial=0)) / HUB_QUERIES}

    def changed(self, rows_BK: RowIds) -> dict[str, float]:
        """Return `candidates_changed`: the share of the fixed queries' former blocks that are no longer candidates.

        Args:
            rows_BK: Candidates of the fixed queries under the new index. At the first call the result is empty.
        """
        before, self._watched = self._watched, rows_BK
        if before is None:
            return {}
        kept = (before[:, :, None] == rows_BK[:, None, :]).any(2)
        there = before != ABSENT
        return {"candidates_changed": float((there & ~kept).sum()) / max(1, int(there.sum()))}

    def state(self) -> dict[str, object]:
        """Return the JSON state for a checkpoint."""
        return {"last": self._last.tolist(), "watched": None if self._watched is None else self._watched.tolist()}

    def restore(self, state: Mapping[str, object]) -> None:
        """Restore what `state` returned."""
        self._last = np.array(state["last"], dtype=np.int64)
        self._watched = None if state["watched"] is None else np.array(state["watched"], dtype=np.int64)


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
