"""From queries to candidates: the best blocks of the index, without the query's own block and without copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.index.protocol import Index, RowIds

Nearest = Callable[[NDArray[np.int64], int], RowIds]
"""Takes the places of some queries of a batch, int64 [S], and a number k. Returns the rows of their k best blocks, int64 [S, K], best first;
fewer than k where there are no more."""
NULL, ABSENT = -1, -2
SPARE = 8
"""Extra hits that are fetched to replace own blocks and copies."""


def in_index(index: Index, query_BD: NDArray[np.float32]) -> Nearest:
    """Return what finds the blocks of queries with these vectors, float32, in an index."""
    return lambda places, k: index.search(query_BD[places], k)[1]


def candidates(
    nearest: Nearest,
    queries: int,
    excluded_B: Sequence[NDArray[np.uint64]] | None,
    uid: NDArray[np.uint64],
    count: int,
    *,
    null: bool = True,
    anyone: Callable[[bool], bool] = bool,
) -> NDArray[np.int64]:
    """Rows of `count` candidates for each query: the null document (-1) first, then blocks by rank.

    A block with an excluded uid, or with that of a better hit, is left out. (The official code also leaves out the
    query's own block, but discards an example with copies: google-research realm/retrieval.py.)

    Args:
        nearest: what finds the best blocks.
        queries: number B of queries.
        excluded_B: uids of the blocks that are no candidates for each query, such as that of its own block; None to allow all.
        uid: uid of every block.
        count: number N of candidates.
        null: whether candidate 0 is the null document.
        anyone: whether a flag is set in any process, where the index is divided over processes.

    Returns:
        int64 [B, N]; -2 fills the slots for which there are too few blocks.
    """
    first = int(null)
    rows_BN = np.full((queries, count), ABSENT, dtype=np.int64)
    rows_BN[:, :first] = NULL
    short, fetched = np.arange(queries), count - first + SPARE
    while anyone(len(short) > 0):
        ids_BK = nearest(short, fetched)
        for query, ids in zip(short.tolist(), ids_BK, strict=True):
            excluded = uid[:0] if excluded_B is None else excluded_B[query]
            best = _distinct(ids, uid[ids], excluded)[: count - first]
            rows_BN[query, first : first + len(best)] = best
        if ids_BK.shape[1] < fetched:
            break
        short, fetched = short[rows_BN[short, -1] == ABSENT], 4 * fetched
    return rows_BN


def doubled(nearest: Nearest, queries: int, uid: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """Whether the `count` best hits of each query hold copies of one block, bool [B]. The official code discards such examples."""
    ids_BK = nearest(np.arange(queries), count)
    return np.array([len(set(uid[ids].tolist())) < len(ids) for ids in ids_BK], dtype=bool)


def _distinct(ids: NDArray[np.int64], uids: NDArray[np.uint64], excluded: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The first id of each uid in the given order, without those of excluded uids."""
    first = np.sort(np.unique(uids, return_index=True)[1])
    kept: NDArray[np.int64] = ids[first[~np.isin(uids[first], excluded)]]
    return kept


def titles_and_bodies(corpus: Corpus, rows: NDArray[np.int64]) -> tuple[list[TokenIds], list[TokenIds]]:
    """Wordpieces of titles and bodies of candidates, rows int64 [C]. The null document and absent candidates are empty."""
    nothing: TokenIds = np.empty(0, dtype=np.int64)
    pairs = [(corpus.title(row), corpus.tokens(row)) if row >= 0 else (nothing, nothing) for row in rows.tolist()]
    return [title for title, _ in pairs], [body for _, body in pairs]
