"""Indexes that find rows by an approximation. The rows are scored with the stored vectors, where the approximation does not keep them itself.

B queries, K answers, D dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from realmctl.execution.batches import slices
from realmctl.index.exact import ExactIndex
from realmctl.index.protocol import RowIds, Scores, Vectors, by_score, check_queries
from realmctl.index.recall import Recall, RecallSample
from realmctl.index.settings import IndexSettings
from realmctl.log import say

EXACT_FROM = 10
"""A search for a tenth of the rows is answered by exact search: it is as fast, and a graph may not reach so many rows."""
GATHERED = 2**19
"""Numbers of stored vectors that are scored at once: 2 MiB, which a core's cache holds."""
UNREACHED = -1
"""The id where a query reached no further row."""


class RescoredIndex(ABC):
    """An approximation over frozen vectors (`realmctl.index.protocol.Index`)."""

    oversampled: int = 1
    """Rows found by the approximation, and scored with the vectors, for each answer."""

    def __init__(self, vectors: Vectors) -> None:
        self._exact = ExactIndex(vectors)

    @property
    def dimension(self) -> int:
        return self._exact.dimension

    @property
    def count(self) -> int:
        return self._exact.count

    def vectors(self, ids: RowIds) -> NDArray[np.float32]:
        return self._exact.vectors(ids)

    @abstractmethod
    def find(self, queries_BD: NDArray[np.float32], k: int) -> tuple[Scores | None, RowIds]:
        """Return k rows for each query, [B, k] in any order; UNREACHED where it finds fewer. Scores only if they are inner products with the vectors."""

    def search(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        """Search as `Index.search` says. Queries that reach too few rows are answered by exact search."""
        if EXACT_FROM * k >= self.count:
            return self._exact.search(queries_BD, k)
        scores, ids = self.search_graph(queries_BD, k)
        lost = ids[:, -1] == UNREACHED  # whose score is -inf
        if lost.any():
            scores[lost], ids[lost] = self._exact.search(queries_BD[lost], k)
        return scores, ids

    def search_graph(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        """Search the approximation only. Ids are UNREACHED and scores -inf where it reaches fewer than k rows."""
        queries = check_queries(queries_BD, k, dimension=self.dimension)
        scores, found = self.find(queries, min(self.oversampled * k, self.count))
        if scores is None:
            scores = np.empty(found.shape, np.float32)
            for part in slices(len(queries), max(1, GATHERED // max(1, found.shape[1] * self.dimension))):
                rows_BKD = self.vectors(np.maximum(found[part], 0).ravel()).reshape(*found[part].shape, self.dimension)
                scores[part] = np.matmul(rows_BKD, queries[part, :, None])[..., 0]
        np.copyto(scores, -np.inf, where=found == UNREACHED)
        scores, ids = by_score(scores, found)
        return scores[:, :k], ids[:, :k]


class Beam(Protocol):
    """An approximate index whose search can be wider and slower: an hnsw graph's `ef`, an inverted file's `nprobe`."""

    ef: int

    @property
    def count(self) -> int: ...

    def search(self, queries_BD: Vectors, k: int, /) -> tuple[Scores, RowIds]: ...

    def search_graph(self, queries_BD: Vectors, k: int, /) -> tuple[Scores, RowIds]: ...


def reach_recall(index: Beam, vectors: Vectors, settings: IndexSettings, device: str, widths: Sequence[int]) -> Recall:
    """Set the width of the search: the one asked for, or the narrowest of `widths` that reaches the floor, or the last."""

    def search(queries: Vectors, k: int) -> tuple[Scores, RowIds]:
        # Queries that reach too few rows count as missed, unless the depth alone is why they are answered exactly.
        return (index.search if EXACT_FROM * k >= index.count else index.search_graph)(queries, k)

    sample = RecallSample.of(settings, vectors, device)
    for ef in (settings.ef,) if settings.ef else widths:
        index.ef = ef
        recall = sample.measure(search)
        say(f"recall@{recall.k} at ef {ef}: {recall}")
        if recall.mean >= settings.min_recall:
            break
    return recall
