"""Statistics of the candidates: the share of the most common block, and how many candidates a refresh changes.

Legend: B queries, K blocks of a query, without the null document. A row number of -2 stands for a missing block.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from realmctl.index.protocol import RowIds
from realmctl.retrieval.search.candidates import ABSENT

HUB_QUERIES = 256
"""Number of last queries over which `hub_share` is computed."""
WATCHED_QUERIES = 64
"""Number of fixed queries whose candidates are compared from index to index."""


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
