"""The interface of every index, and the checks at the start of every search.

B queries, K answers to a query, D dimension.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from realmctl.errors import ConfigError, MismatchError, NotFiniteError

Scores = NDArray[np.float32]
RowIds = NDArray[np.int64]
Vectors = NDArray[np.floating]


class Index(Protocol):
    """A fixed set of vectors that is searched by inner product. The id of a vector is its row.

    An index never changes after it was built. A refresh builds another index and replaces the reference: hnswlib crashes
    when one thread searches while another adds or loads, and updates in place cost more than a rebuild.
    """

    @property
    def dimension(self) -> int: ...

    @property
    def count(self) -> int: ...

    def search(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        """Return the k best rows of each query: scores [B, K] float32 and ids [B, K] int64, K = min(k, count).

        Sorted by falling score, ties by rising id. Raises InputError for queries that are not finite,
        MismatchError for queries of another dimension, ConfigError for k < 1.
        """
        ...

    def vectors(self, ids: RowIds) -> NDArray[np.float32]:
        """Return the vectors with these ids: ids of any shape [...] give float32 [..., D]."""
        ...


def check_queries(queries_BD: Vectors, k: int, *, dimension: int) -> NDArray[np.float32]:
    """Return the queries as contiguous float32 [B, D]. Raises what `Index.search` raises."""
    if k < 1:
        raise ConfigError(f"A search asks for {k} answers a query; the least is 1.")
    queries_BD = np.asarray(queries_BD)
    if queries_BD.ndim != 2:
        raise ConfigError(
            f"Queries are an array [B, D], one vector a row, and this one has the shape {list(queries_BD.shape)}. Put a single "
            "vector v into a batch: v[None]."
        )
    if queries_BD.shape[1] != dimension:
        raise MismatchError(
            f"Queries of shape {list(queries_BD.shape)} cannot search an index of dimension {dimension}: it "
            "was built with another retriever. Embed the blocks with this retriever and build the index "
            "again."
        )
    queries = np.ascontiguousarray(queries_BD, dtype=np.float32)
    if not np.isfinite(queries).all():
        bad = np.flatnonzero(~np.isfinite(queries).all(axis=1))
        raise NotFiniteError(
            f"{len(bad)} of {len(queries)} queries (the first is row {bad[0]}) hold NaN or infinite values, "
            "so they cannot be searched. The query encoder's weights are probably damaged or its "
            "training has diverged."
        )
    return queries


def by_score(scores_BK: Scores, ids_BK: RowIds) -> tuple[Scores, RowIds]:
    """Sort each row by falling score, ties by rising id."""
    if (scores_BK[:, 1:] < scores_BK[:, :-1]).all():
        return scores_BK, ids_BK
    order = np.lexsort((ids_BK, -scores_BK), axis=-1)
    row_B1 = np.arange(len(order))[:, None]
    return scores_BK[row_B1, order], ids_BK[row_B1, order]


def best_rows(scores: Scores, k: int) -> tuple[Scores, RowIds]:
    """Return the k best scores and their rows, best first; among equal scores the lower rows."""
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    rows = np.flatnonzero(scores >= least)
    best, ids = by_score(scores[rows][None], rows[None])
    return best[0, :k], ids[0, :k]
