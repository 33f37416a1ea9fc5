from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

from realmctl.errors import ConfigError, InputError, MismatchError, QualityError, ResourceError
from realmctl.extras.hnsw.hnsw import HnswIndex
from realmctl.extras.hnsw.options import HnswOptions
from realmctl.index.build import build
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_index, read_index_description
from realmctl.index.recall import Recall, RecallSample
from tests.fixtures.index import built, clustered, folder_with


def test_hnsw_from_vectors_to_answers(tmp_path):
    matrix = clustered(600)
    metrics = build(folder_with(tmp_path, matrix), HnswOptions(type="hnsw", recall_sample=100))
    assert metrics["recall"] >= 0.95 and metrics["recall_low"] <= metrics["recall"] <= metrics["recall_high"]
    assert (metrics["rows"], metrics["dimension"], metrics["recall_k"], metrics["recall_queries"]) == (
        600,
        16,
        8,
        100,
    )
    index = open_index(tmp_path)
    assert isinstance(index, HnswIndex) and (index.count, index.dimension, index.ef) == (600, 16, metrics["ef"])
    assert index.search(matrix[:50], 1)[1].shape == (50, 1)


def test_the_description_says_all_that_hnswlib_forgets(tmp_path):
    built(tmp_path, clustered(200), m=6, ef_construction=77, ef=99, seed=4, min_recall=0.0)
    fields = json.loads((tmp_path / "index.json").read_text())
    found = {
        name: fields[name]
        for name in ("type", "dimension", "count", "metric", "m", "ef_construction", "ef", "seed", "build_threads")
    }
    assert found == {
        "type": "hnsw",
        "dimension": 16,
        "count": 200,
        "metric": "ip",
        "m": 6,
        "ef_construction": 77,
        "ef": 99,
        "seed": 4,
        "build_threads": 1,
    }


def test_two_builds_make_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        built(tmp_path / name, clustered(300))
    for file in ("hnsw.bin", "index.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_several_threads_build_an_index_too(tmp_path):
    """Threads insert in an order of their own; ids are the rows all the same."""
    vectors = clustered(2000)
    built(tmp_path, vectors, build_threads=4)
    index = open_index(tmp_path)
    assert index.count == 2000
    scores, ids = index.search(vectors[:50], 1)
    assert np.allclose(scores[:, 0], (vectors[:50] * vectors[ids[:, 0]]).sum(1), rtol=1e-5)


class Recalls:
    """A recall sample that says what it is told to, and remembers at which ef it was asked."""

    def __init__(self, at_ef: dict[int, float]) -> None:
        self.at_ef, self.asked = at_ef, []

    def __call__(self, settings, vectors, device):
        return self

    def measure(self, search):
        ef = inspect.getclosurevars(search).nonlocals["index"].ef
        self.asked.append(ef)
        return Recall(self.at_ef[ef], 0.0, 1.0, 8, 100)


def test_ef_is_the_narrowest_that_reaches_the_floor(tmp_path, monkeypatch):
    sample = Recalls({64: 0.7, 128: 0.9, 256: 0.97, 512: 0.99})
    monkeypatch.setattr(RecallSample, "of", sample)
    metrics = build(folder_with(tmp_path, clustered(50)), HnswOptions(type="hnsw"))
    assert (metrics["ef"], metrics["recall"], sample.asked) == (256, 0.97, [64, 128, 256])
    assert open_index(tmp_path).ef == 256


def test_an_ef_that_was_asked_for_is_the_only_one_tried(tmp_path, monkeypatch):
    sample = Recalls({100: 0.5})
    monkeypatch.setattr(RecallSample, "of", sample)
    with pytest.raises(QualityError, match="ef 100"):
        build(folder_with(tmp_path, clustered(50)), HnswOptions(type="hnsw", ef=100))


def test_below_the_floor_there_is_no_index(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(3000, 32)).astype(np.float32)
    with pytest.raises(QualityError) as error:
        build(
            folder_with(tmp_path, matrix),
            HnswOptions(type="hnsw", m=2, ef_construction=4, ef=1, min_recall=1.0, recall_sample=50),
        )
    assert error.value.exit_code == 6
    with pytest.raises(InputError, match=r"index.json"):
        open_index(tmp_path)


def test_the_recall_is_that_of_the_depth_where_least_is_found(tmp_path):
    """A narrow beam finds the nearest rows and not the hundred nearest; a search for a tenth of the rows is exact."""
    vectors = clustered(2000)
    asked = {"m": 4, "ef_construction": 20, "recall_sample": 100, "min_recall": 0.0}
    at = {
        depths: build(folder_with(tmp_path, vectors), HnswOptions(type="hnsw", **asked, ef=120, recall_k=depths))
        for depths in ((8,), (100,), (8, 100), (300,))
    }
    assert at[8, 100]["recall"] == at[100,]["recall"] < at[8,]["recall"] and at[8, 100]["recall_k"] == 100
    assert at[300,]["recall"] == 1.0
    queries = clustered(5, seed=1)
    assert (open_index(tmp_path).search(queries, 300)[1] == ExactIndex(vectors).search(queries, 300)[1]).all()


@pytest.mark.parametrize(
    "change", [{"type": "tree"}, {"count": "9"}, {"count": 0}, {"metric": "l2"}, {"m": 1}, {"entry_point": 99}], ids=str
)
def test_a_description_that_cannot_be_is_refused(tmp_path, change):
    built(tmp_path, clustered(9))
    path = tmp_path / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=r"index.json"):
        open_index(tmp_path)


def test_vectors_that_are_not_finite_are_refused_before_anything_is_built(tmp_path):
    matrix = clustered(50)
    matrix[3] = np.nan
    with pytest.raises(InputError, match="Row 3"):
        build(folder_with(tmp_path, matrix), HnswOptions(type="hnsw"))
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.npy"]


@pytest.mark.parametrize(
    "options",
    [
        {"m": 1},
        {"m": 513},
        {"ef": 0},
        {"ef_construction": 0},
        {"build_threads": 0},
    ],
    ids=str,
)
def test_options_that_cannot_work_are_refused(tmp_path, options):
    with pytest.raises(ConfigError, match=next(iter(options)).replace("_", "-")):
        build(folder_with(tmp_path, clustered(9)), HnswOptions(type="hnsw", **options))


@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_handful_of_blocks_can_be_indexed(tmp_path, count):
    built(tmp_path, clustered(count))
    assert sorted(open_index(tmp_path).search(clustered(1, seed=1), 8)[1][0]) == list(range(count))


class TestOpen:
    @pytest.fixture
    def folder(self, tmp_path):
        return built(tmp_path, clustered(80), min_recall=0.0)

    @pytest.mark.parametrize("bit", [0, 767, 5000, -1])
    def test_a_flipped_bit_of_the_graph_is_refused(self, folder, bit):
        data = bytearray((folder / "hnsw.bin").read_bytes())
        data[bit // 8] ^= 1 << bit % 8
        (folder / "hnsw.bin").write_bytes(bytes(data))
        with pytest.raises(InputError, match=r"hnsw.bin"):
            open_index(folder)

    @pytest.mark.parametrize("name", ["hnsw.bin", "index.json", "vectors.npy"])
    def test_a_missing_file_is_named(self, folder, name):
        (folder / name).unlink()
        with pytest.raises(InputError, match=name):
            open_index(folder)

    def test_vectors_of_another_matrix_are_refused(self, folder):
        np.save(folder / "vectors.npy", clustered(80, seed=9))
        with pytest.raises(InputError, match=r"hnsw.bin"):
            open_index(folder)
        np.save(folder / "vectors.npy", clustered(81))
        with pytest.raises(MismatchError, match="80"):
            open_index(folder)

    @pytest.mark.parametrize(
        "change",
        [
            {"type": "int8"},
            {"metric": "l2"},
            {"dimension": 0},
            {"count": -1},
            {"ef": True},
            {"ef": 64.0},
            {"m": "16"},
            {"unknown": 1},
            {"entry_point": 80},
            {"sha256": 3},
        ],
        ids=str,
    )
    def test_a_description_that_makes_no_sense_is_refused(self, folder, change):
        fields = json.loads((folder / "index.json").read_text())
        (folder / "index.json").write_text(json.dumps(fields | change))
        with pytest.raises(InputError, match=r"index.json"):
            read_index_description(folder)

    @pytest.mark.parametrize("change", [{"dimension": 17}, {"m": 17}, {"count": 79}, {"max_level": 9}])
    def test_a_description_of_another_graph_is_refused(self, folder, change):
        fields = json.loads((folder / "index.json").read_text())
        (folder / "index.json").write_text(json.dumps(fields | change))
        with pytest.raises((InputError, MismatchError)):
            open_index(folder)

    @pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"type": "exact"}'])
    def test_what_is_no_description_is_refused(self, folder, text):
        (folder / "index.json").write_text(text)
        with pytest.raises(InputError, match=r"index.json"):
            open_index(folder)

    def test_without_hnswlib_a_graph_cannot_be_opened_but_exact_can(self, folder, tmp_path, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "hnswlib", None)
        with pytest.raises(ResourceError):
            open_index(folder)
        assert open_index(built(tmp_path / "exact", clustered(9), type="exact")).count == 9
