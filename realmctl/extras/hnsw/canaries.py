"""Canary queries: rows of the vectors, and what the graph answered to them when it was built.

A graph file with valid links that are not those built passes every check of its layout, and finds other neighbours. Opening
an index asks the canaries again. B canaries, K neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from realmctl.index.protocol import RowIds, Scores, Vectors, by_score
from realmctl.index.recall import TOLERANCE

CANARIES = 256
"""Rows that are asked, spread evenly over the vectors. Fewer when there are fewer rows."""
NEIGHBOURS = 8
MAX_NEIGHBOURS = 64

Canaries = Sequence[Sequence[int]]
"""One list for each canary: its row, then the ids that the graph found for it."""


def choose_canaries(search_graph: Callable[[Vectors, int], tuple[Scores, RowIds]], vectors: Vectors) -> list[list[int]]:
    """Return the canaries of a graph that was just built. Rows for which it finds too few neighbours are left out."""
    rows = np.unique(np.linspace(0, len(vectors) - 1, min(CANARIES, len(vectors))).astype(np.int64))
    _, ids = search_graph(np.asarray(vectors[rows], np.float32), NEIGHBOURS)
    found = (ids >= 0).all(axis=1)
    return [[int(row), *map(int, own)] for row, own in zip(rows[found], ids[found], strict=True)]


def check_canaries(canaries: Canaries, count: int) -> None:
    """Raise ValueError for canaries that cannot be those of an index with `count` vectors."""
    lengths = {len(each) if isinstance(each, list) else 0 for each in canaries}
    if len(canaries) > CANARIES or len(lengths) > 1 or not all(2 <= length <= 1 + MAX_NEIGHBOURS for length in lengths):
        raise ValueError("its canaries are not lists of one row and its neighbours")
    if not all(type(number) is int and 0 <= number < count for each in canaries for number in each):
        raise ValueError(f"a canary is not a row of {count} vectors")


def worse_canaries(
    canaries: Canaries, search_graph: Callable[[Vectors, int], tuple[Scores, RowIds]], vectors: Vectors
) -> int:
    """Return how many canaries are answered worse than when the index was built.

    Scores are compared, not ids: rows of equal score are equally good, and another processor rounds differently.
    """
    if not canaries:
        return 0
    table_BK = np.array(canaries, dtype=np.int64)
    queries, expected = np.asarray(vectors[table_BK[:, 0]], np.float32), table_BK[:, 1:]
    wanted = _scores(queries, expected, vectors)
    found, _ = search_graph(queries, expected.shape[1])
    slack = TOLERANCE * np.abs(wanted).max(axis=1, keepdims=True)
    return int((found < wanted - slack).any(axis=1).sum())


def _scores(queries: NDArray[np.float32], ids: RowIds, vectors: Vectors) -> Scores:
    rows = np.asarray(vectors[ids], np.float32)
    return by_score(np.einsum("bd,bkd->bk", queries, rows).astype(np.float32), ids)[0]
