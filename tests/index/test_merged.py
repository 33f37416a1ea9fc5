"""An index in parts against the whole one: ids, scores and ties, over parts in one process and over processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from realmctl.errors import ConfigError, InputError, QualityError
from realmctl.index.build import build
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_index, open_part
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


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> Path:
    """An hnsw index of three graphs over 300 vectors."""
    folder = tmp_path_factory.mktemp("shards")
    np.save(folder / "vectors.npy", np.random.default_rng(0).standard_normal((300, 16), np.float32))
    metrics = build(folder, IndexSettings(type="hnsw", shards=3, recall_sample=100))
    assert metrics["recall"] >= 0.95 and metrics["recall_queries"] == 100
    return folder


def test_graphs_are_searched_together_by_any_number_of_processes(shards):
    vectors = np.load(shards / "vectors.npy")
    queries = np.random.default_rng(1).standard_normal((20, 16), np.float32)
    expected = brute_force(vectors, queries, 5)
    assert (open_index(shards).search(queries, 5)[1] == expected).mean() > 0.95
    for count in (1, 2, 3, 4):
        parts = [open_part(shards, "cpu", rank, count)[0] for rank in range(count)]
        assert sum(part.count for part in parts) == 300
        ids = MergedIndex([pair for part in parts for pair in part.parts], vectors).search(queries, 5)[1]
        assert (ids == open_index(shards).search(queries, 5)[1]).all()


def test_equal_builds_have_equal_bytes(shards, tmp_path):
    np.save(tmp_path / "vectors.npy", np.load(shards / "vectors.npy"))
    build(tmp_path, IndexSettings(type="hnsw", shards=3, recall_sample=100))
    files = [path.relative_to(shards) for path in shards.rglob("*") if path.is_file()]
    assert len(files) == 8
    assert all((tmp_path / file).read_bytes() == (shards / file).read_bytes() for file in files)


@pytest.mark.parametrize("file", ["shard-001/index.json", "shard-002/hnsw.bin"])
def test_a_damaged_shard_is_refused_by_name(shards, tmp_path, file):
    for path in shards.rglob("*"):
        if path.is_file():
            (tmp_path / path.relative_to(shards)).parent.mkdir(exist_ok=True)
            (tmp_path / path.relative_to(shards)).write_bytes(path.read_bytes())
    data = bytearray((tmp_path / file).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InputError, match=file):
        open_index(tmp_path)


def test_a_shard_of_another_index_is_refused_by_name(shards, tmp_path):
    """It is whole, and of the same shape, but its graph is that of other vectors."""
    np.save(tmp_path / "vectors.npy", np.random.default_rng(5).standard_normal((300, 16), np.float32))
    build(tmp_path, IndexSettings(type="hnsw", shards=3, recall_sample=100))
    for file in ("hnsw.bin", "index.json"):
        (tmp_path / "shard-001" / file).write_bytes((shards / "shard-001" / file).read_bytes())
    with pytest.raises(InputError, match=r"shard-001/index.json"):
        open_index(tmp_path)
    with pytest.raises(InputError, match="shard-001"):
        open_part(tmp_path, "cpu", 1, 3)


def test_the_floor_holds_for_the_merged_answers(tmp_path):
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).standard_normal((400, 32), np.float32))
    with pytest.raises(QualityError):
        build(
            tmp_path,
            IndexSettings(type="hnsw", shards=2, m=2, ef_construction=1, ef=1, min_recall=1.0, recall_sample=200),
        )
    assert not (tmp_path / "index.json").exists()


def test_what_cannot_be_divided_is_refused(tmp_path):
    np.save(tmp_path / "vectors.npy", whole_numbers(5, 0))
    with pytest.raises(ConfigError, match="--shards 2"):
        build(tmp_path, IndexSettings(type="exact", shards=2))
    with pytest.raises(ConfigError, match="--shards 6"):
        build(tmp_path, IndexSettings(type="hnsw", shards=6))
    build(tmp_path, IndexSettings(type="hnsw"))
    with pytest.raises(ConfigError, match="hnsw"):
        open_part(tmp_path, "cpu", 0, 2)
