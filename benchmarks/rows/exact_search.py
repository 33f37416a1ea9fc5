"""The best 8 rows by inner product, out of random vectors of 128 dimensions, for one query and for 32 at once.

What was found, on an AMD EPYC that other work shared, in CPU ms for one query and a million rows: torch's product takes 72, NumPy's 37, `np.vecdot` 18, the whole search of faiss 18,
and reading the rows 15. So NumPy's inner products are taken, and of later chunks only the scores above the eighth so far are sorted. A search of one query went from 43 to 24.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from row import DisagreementError, Result, Row, Side, Work

DIMENSION, BEST, QUERIES = 128, 8, 32


def prepare(queries: int, folder: Path, quick: bool) -> str:
    rng, rows = np.random.default_rng(0), 10**5 if quick else 10**6
    np.save(folder / "vectors.npy", rng.standard_normal((rows, DIMENSION), np.float32))
    np.save(folder / "queries.npy", rng.standard_normal((QUERIES, DIMENSION), np.float32))
    (folder / "at-once").write_text(str(queries))
    return f"{rows:,} vectors, {QUERIES} queries, {queries} at once"


def parts(folder: Path) -> tuple[Result, list[Result]]:
    queries, size = np.load(folder / "queries.npy"), int((folder / "at-once").read_text())
    return np.load(folder / "vectors.npy"), [queries[start : start + size] for start in range(0, QUERIES, size)]


def ours(folder: Path) -> Work:
    from realmctl.index.exact import ExactIndex

    vectors, queries = parts(folder)
    index = ExactIndex(vectors)
    return lambda: np.concatenate([index.search(each, BEST)[1] for each in queries])


def faiss(folder: Path) -> Work:
    import faiss

    vectors, queries = parts(folder)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(vectors)
    return lambda: np.concatenate([index.search(each, BEST)[1] for each in queries])


def plain_numpy(folder: Path) -> Work:
    vectors, queries = parts(folder)

    def search() -> Result:
        found = []
        for each in queries:
            scores = each @ vectors.T
            best = np.argpartition(scores, -BEST, axis=1)[:, -BEST:]
            order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
            found.append(np.take_along_axis(best, order, axis=1))
        return np.concatenate(found)

    return search


def agree(mine: Result, theirs: Result) -> str:
    same = float((mine == theirs).mean())
    if same < 0.999:  # equal scores up to rounding may change places
        raise DisagreementError(f"{same:.4f} of the rows are the same")
    return f"{100 * same:.1f} % of the rows"


ROWS = tuple(
    Row(
        name=f"exact-{queries}",
        stage="exact search, best 8",
        prepare=partial(prepare, queries),
        ours=(Side("exact", ours),),
        peers=(Side("faiss Flat", faiss, needs=("faiss",)), Side("numpy", plain_numpy)),
        agree=agree,
    )
    for queries in (1, QUERIES)
)
