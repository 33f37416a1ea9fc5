"""An index in parts against the whole one: ids, scores and ties, over parts in one process and over processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from realmctl.errors import ConfigError
from realmctl.index.build import build
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_part
from realmctl.index.merged import IndexOfProcesses, MergedIndex, bounds
from realmctl.index.settings import IndexSettings


def whole_numbers(rows: int, seed: int) -> NDArray[np.float32]:
    """Vectors whose products are exact, with many ties."""
    return np.random.default_rng(seed).integers(-2, 3, (rows, 4)).astype(np.float32)


def brute_force(vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    scores = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    return np.array([sorted(range(len(vectors)), key=lambda row: (-own[row], row))[:k] for own in scores])


def gathers(count: int) -> list[Callable[[NDArray[Any]], list[NDArray[Any]]]]:
    """What `data_parallel.gather_rows` does, between threads."""
    table: list[Any] = [None] * count
    barrier = Barrier(count, timeout=300)

    def gather(rank: int, rows: NDArray[Any]) -> list[NDArray[Any]]:
        table[rank] = rows
        barrier.wait()
        found = list(table)
        barrier.wait()
        return found

    return [lambda rows, rank=rank: gather(rank, rows) for rank in range(count)]  # type: ignore[misc]


@pytest.mark.parametrize(("rows", "k"), [(50, 7), (50, 60), (3, 2)])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_parts_are_merged_as_one_index_sorts_them(rows, k, parts):
    vectors, queries = whole_numbers(rows, 0), whole_numbers(9, 1)
    own = [(first, ExactIndex(vectors[first:stop])) for first, stop in bounds(rows, parts) if stop > first]
    scores, ids = MergedIndex(own, vectors).search(queries, k)
    assert (ids == brute_force(vectors, queries, k)).all()
    assert (scores == ExactIndex(vectors).search(queries, k)[0]).all()


def test_what_a_part_did_not_find_is_no_row_of_another():
    """An approximate part that finds one row only fills the rest with -1."""
    vectors, queries = whole_numbers(8, 0), whole_numbers(9, 1)
    last = ExactIndex(vectors[5:])
    short = SimpleNamespace(count=3, dimension=4, search=lambda queries_BD, k: one_of(*last.search(queries_BD, k)))
    scores, ids = MergedIndex([(0, ExactIndex(vectors[:5])), (5, short)], vectors).search(queries, 8)
    assert ((ids >= 0) == np.isfinite(scores)).all() and ((ids >= 0).sum(1) == 6).all()
    assert all(len(set(row[row >= 0])) == 6 for row in ids)


def one_of(scores: NDArray[np.float32], ids: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    scores[:, 1:], ids[:, 1:] = -np.inf, -1
    return scores, ids


@pytest.mark.parametrize("rows", [40, 2])
def test_processes_with_different_queries_find_what_one_finds(tmp_path, rows):
    vectors, count, k = whole_numbers(rows, 2), 3, 6
    np.save(tmp_path / "vectors.npy", vectors)
    build(tmp_path, IndexSettings(type="exact"))
    asked = [whole_numbers(number, 3 + number) for number in (5, 0, 2)]

    def search(rank: int) -> NDArray[np.int64]:
        own, whole = open_part(tmp_path, "cpu", rank, count)
        assert whole == rows and own.count in (rows // count, rows // count + 1)
        return IndexOfProcesses(own, whole, exchange[rank], rank).search(asked[rank], k)[1]

    exchange = gathers(count)
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(search, range(count)))
    for queries, ids in zip(asked, found, strict=True):
        assert ids.shape == (len(queries), min(k, rows))
        assert not len(queries) or (ids == brute_force(vectors, queries, k)).all()


def test_what_cannot_be_divided_is_refused(tmp_path):
    np.save(tmp_path / "vectors.npy", whole_numbers(5, 0))
    with pytest.raises(ConfigError, match="--shards 2"):
        build(tmp_path, IndexSettings(type="exact", shards=2))
