"""An index whose rows are divided into parts: in one process, or over the processes that train together.

Each part is searched for the best rows of its own. The answers are merged as one index would sort them: by falling score,
ties by rising id. Processes exchange queries, scores and ids, and nothing else.
B queries of this process, C queries of all processes, K answers to a query, D dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from realmctl.execution.batches import batched
from realmctl.index.protocol import Index, RowIds, Scores, Vectors, best_rows, by_score, check_queries
from realmctl.index.vectors import ROWS_PER_CHUNK

Gather = Callable[[NDArray[Any]], Sequence[NDArray[Any]]]
"""Takes the rows of this process, and returns those of all processes in order of rank."""
Search = Callable[[Vectors, int], tuple[Scores, RowIds]]


class MergedIndex:
    """Indexes over ranges of the rows of `vectors` (`realmctl.index.protocol.Index`).

    Args:
        parts: (first row, index) of each range. The ranges may leave rows out, which are then not found.
        vectors: All vectors.
    """

    def __init__(self, parts: Sequence[tuple[int, Index]], vectors: Vectors) -> None:
        self.parts, self._vectors = parts, vectors

    @property
    def dimension(self) -> int:
        return int(self._vectors.shape[1])

    @property
    def count(self) -> int:
        return sum(part.count for _, part in self.parts)

    def vectors(self, ids: RowIds) -> NDArray[np.float32]:
        return np.asarray(self._vectors[ids], dtype=np.float32)

    def search(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        return self._merged(queries_BD, k, [part.search for _, part in self.parts])

    def _merged(self, queries_BD: Vectors, k: int, searches: Sequence[Search]) -> tuple[Scores, RowIds]:
        """Search each part. Ids below 0 stand where a part found fewer rows."""
        if len(self.parts) == 1 and not self.parts[0][0]:
            return searches[0](queries_BD, k)
        queries = check_queries(queries_BD, k, dimension=self.dimension)
        scores, ids = [np.empty((len(queries), 0), np.float32)], [np.empty((len(queries), 0), np.int64)]
        for (first, _), search in zip(self.parts, searches, strict=True):
            own_scores, own_ids = search(queries, k)
            scores.append(own_scores)
            ids.append(np.where(own_ids < 0, own_ids, own_ids + first))
        return merge(scores, ids, k)


class IndexOfProcesses:
    """An index whose rows are divided over processes (`realmctl.index.protocol.Index`).

    All processes must call `search` equally often, with the same k. They may have different queries, or none.

    Args:
        own: The rows of this process; `count` and `vectors` are those of the whole index.
        count: Number of rows of all processes.
        gather: Exchanges arrays between the processes.
        rank: Number of this process.
    """

    def __init__(self, own: MergedIndex, count: int, gather: Gather, rank: int) -> None:
        self._own, self.count, self._gather, self._rank = own, count, gather, rank

    @property
    def dimension(self) -> int:
        return self._own.dimension

    def vectors(self, ids: RowIds) -> NDArray[np.float32]:
        return self._own.vectors(ids)

    def search(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        queries = self._gather(check_queries(queries_BD, k, dimension=self.dimension))
        found_scores, found_ids = self._own.search(np.concatenate(queries), k)
        first = sum(len(part) for part in queries[: self._rank])
        mine = slice(first, first + len(queries_BD))
        # Queries lie along axis 1 here, because processes may differ in the number of rows that they find.
        scores = [part.T[mine] for part in self._gather(np.ascontiguousarray(found_scores.T))]
        ids = [part.T[mine] for part in self._gather(np.ascontiguousarray(found_ids.T))]
        return merge(scores, ids, k)


def merge(scores: Sequence[Scores], ids: Sequence[RowIds], k: int) -> tuple[Scores, RowIds]:
    """Return the k best of several answers to the same queries, [B, K]; fewer where there are fewer."""
    best_scores, best_ids = by_score(np.concatenate(scores, axis=1), np.concatenate(ids, axis=1))
    return best_scores[:, :k], best_ids[:, :k]


def best_among(scores: Callable[[RowIds], Scores], k: int, rows: RowIds) -> list[tuple[Scores, RowIds]]:
    """Scores and rows of the k best of some blocks for each question, exactly, whatever the index.

    scores: gives the scores of some blocks for each question, [B, rows]. rows: rows of the blocks, at least one, rising.
    """
    found = []
    for part in batched(rows, ROWS_PER_CHUNK):
        best = [best_rows(own, min(k, len(part))) for own in scores(part)]
        found.append((np.stack([own for own, _ in best]), part[np.stack([places for _, places in best])]))
    return [*zip(*merge([own for own, _ in found], [own for _, own in found], k), strict=True)]


def bounds(count: int, parts: int) -> list[tuple[int, int]]:
    """Return (first row, row after the last) of each of `parts` ranges whose lengths differ by 1 at most."""
    return [(count * part // parts, count * (part + 1) // parts) for part in range(parts)]
