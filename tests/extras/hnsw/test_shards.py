"""Graphs over ranges of the rows against brute force, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from realmctl.errors import ConfigError, InputError, QualityError
from realmctl.extras.hnsw.options import HnswOptions
from realmctl.index.build import build
from realmctl.index.index_type import open_index, open_part
from realmctl.index.merged import MergedIndex
from tests.fixtures.index import brute_force


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> Path:
    """An hnsw index of three graphs over 300 vectors."""
    folder = tmp_path_factory.mktemp("shards")
    np.save(folder / "vectors.npy", np.random.default_rng(0).standard_normal((300, 16), np.float32))
    metrics = build(folder, HnswOptions(type="hnsw", shards=3, recall_sample=100))
    assert metrics["recall"] >= 0.95 and metrics["recall_queries"] == 100
    return folder


def test_graphs_are_searched_together_by_any_number_of_processes(shards):
    vectors = np.load(shards / "vectors.npy")
    queries = np.random.default_rng(1).standard_normal((20, 16), np.float32)
    expected = brute_force(vectors, queries, 5)[1]
    assert (open_index(shards).search(queries, 5)[1] == expected).mean() > 0.95
    for count in (1, 2, 3, 4):
        parts = [open_part(shards, "cpu", rank, count)[0] for rank in range(count)]
        assert sum(part.count for part in parts) == 300
        ids = MergedIndex([pair for part in parts for pair in part.parts], vectors).search(queries, 5)[1]
        assert (ids == open_index(shards).search(queries, 5)[1]).all()


def test_equal_builds_have_equal_bytes(shards, tmp_path):
    np.save(tmp_path / "vectors.npy", np.load(shards / "vectors.npy"))
    build(tmp_path, HnswOptions(type="hnsw", shards=3, recall_sample=100))
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
    build(tmp_path, HnswOptions(type="hnsw", shards=3, recall_sample=100))
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
            HnswOptions(type="hnsw", shards=2, m=2, ef_construction=1, ef=1, min_recall=1.0, recall_sample=200),
        )
    assert not (tmp_path / "index.json").exists()


def test_what_cannot_be_divided_is_refused(tmp_path):
    np.save(tmp_path / "vectors.npy", np.ones((5, 4), np.float32))
    with pytest.raises(ConfigError, match="--shards 6"):
        build(tmp_path, HnswOptions(type="hnsw", shards=6))
    build(tmp_path, HnswOptions(type="hnsw"))
    with pytest.raises(ConfigError, match="hnsw"):
        open_part(tmp_path, "cpu", 0, 2)
