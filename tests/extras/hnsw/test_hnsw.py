from __future__ import annotations

import os
import sys

import hnswlib
import numpy as np
import pytest

from realmctl.errors import ConfigError, InputError, MismatchError, ResourceError
from realmctl.extras.hnsw.hnsw import HnswIndex, build_graph, load_graph, save_graph
from realmctl.index.exact import ExactIndex
from tests.fixtures.index import clustered


def graph_of(matrix, threads=1, seed=0):
    return build_graph(matrix, m=8, ef_construction=60, seed=seed, threads=threads)


def test_finds_what_exact_search_finds_with_the_same_scores():
    matrix, queries = clustered(500), clustered(40, seed=1)
    graph = build_graph(matrix, m=32, ef_construction=400, seed=0, threads=1)
    scores, ids = HnswIndex(graph, matrix, ef=500).search(queries, 7)
    wanted_scores, wanted_ids = ExactIndex(matrix).search(queries, 7)
    assert (ids == wanted_ids).all() and (scores.dtype, ids.dtype) == (np.float32, np.int64)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-5)


def test_scores_are_those_of_the_frozen_vectors_not_of_the_graph():
    matrix = clustered(300).astype(np.float16)
    index = HnswIndex(graph_of(matrix), matrix, ef=300)
    scores, ids = index.search(clustered(5, seed=1), 4)
    np.testing.assert_allclose(scores, np.einsum("bd,bkd->bk", clustered(5, seed=1), index.vectors(ids)), rtol=1e-6)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("k", [3, 30, 31])
def test_more_answers_than_vectors_gives_all_of_them(k):
    matrix = clustered(30)
    _, ids = HnswIndex(graph_of(matrix), matrix, ef=10).search(clustered(4, seed=1), k)
    assert ids.shape == (4, min(k, 30))
    assert all(len(set(row)) == len(row) for row in ids)


def test_more_answers_than_ef_widens_the_beam():
    matrix = clustered(400)
    assert HnswIndex(graph_of(matrix), matrix, ef=1).search(clustered(4, seed=1), 100)[1].shape == (4, 100)


def test_a_graph_that_falls_apart_is_answered_exactly():
    """Two links a vector and many equal rows: hnswlib alone raises 'Probably ef or M is too small'."""
    matrix = np.repeat(clustered(4), 100, axis=0)
    graph = build_graph(matrix, m=2, ef_construction=2, seed=0, threads=1)
    with pytest.raises(RuntimeError):
        graph.knn_query(matrix[:1], 400)
    index = HnswIndex(graph, matrix, ef=10)
    scores, ids = index.search_graph(matrix[:2], 400)
    assert (ids == -1).all() and (scores == -np.inf).all()
    assert (index.search(matrix[:2], 400)[1] == ExactIndex(matrix).search(matrix[:2], 400)[1]).all()


def test_only_the_queries_beyond_reach_are_answered_exactly(monkeypatch):
    matrix, queries = clustered(200), clustered(6, seed=1)
    index = HnswIndex(graph_of(matrix), matrix, ef=200)
    monkeypatch.setattr(index, "_graph", Moody(index._graph, unreached=queries[[1, 4]]))
    asked = []
    search = index._exact.search
    monkeypatch.setattr(index._exact, "search", lambda queries, k: asked.append(queries) or search(queries, k))
    _, ids = index.search(queries, 5)
    assert (asked[0] == queries[[1, 4]]).all() and len(asked) == 1
    assert (ids[[1, 4]] == ExactIndex(matrix).search(queries[[1, 4]], 5)[1]).all()


class Moody:
    """A graph that reaches nothing from some queries."""

    def __init__(self, graph, unreached):
        self._graph, self._unreached = graph, unreached

    def knn_query(self, queries, k, num_threads):
        if (queries[:, None] == self._unreached).all(axis=2).any():
            raise RuntimeError("Probably ef or M is too small")
        return self._graph.knn_query(queries, k, num_threads=num_threads)


def test_one_thread_builds_the_same_bytes_every_time_in_any_batching(tmp_path, monkeypatch):
    save_graph(graph_of(clustered()), tmp_path / "a.bin")
    monkeypatch.setattr("realmctl.extras.hnsw.hnsw.VECTORS_AT_ONCE", 17)
    save_graph(graph_of(clustered()), tmp_path / "b.bin")
    save_graph(graph_of(clustered(), seed=1), tmp_path / "c.bin")
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes()
    assert (tmp_path / "a.bin").read_bytes() != (tmp_path / "c.bin").read_bytes()


def test_loading_restores_ef_which_hnswlib_forgets(tmp_path):
    matrix, queries = clustered(500), clustered(50, seed=1)
    graph = graph_of(matrix)
    shape = save_graph(graph, tmp_path / "g.bin")
    loaded = load_graph(tmp_path / "g.bin", shape, matrix)
    assert loaded.ef == 10
    index = HnswIndex(loaded, matrix, ef=321)
    assert loaded.ef == index.ef == 321
    assert (index.search(queries, 8)[1] == HnswIndex(graph, matrix, ef=321).search(queries, 8)[1]).all()


@pytest.mark.parametrize("k, queries, error", [(0, clustered(2), ConfigError), (1, clustered(2, 9), MismatchError)])
def test_wrong_searches_are_refused(k, queries, error):
    matrix = clustered(30)
    with pytest.raises(error):
        HnswIndex(graph_of(matrix), matrix, ef=10).search(queries, k)


def test_nan_queries_are_refused():
    matrix = clustered(30)
    with pytest.raises(InputError, match="NaN"):
        HnswIndex(graph_of(matrix), matrix, ef=10).search(np.full((1, 16), np.nan), 3)


class FullDisk:
    """An hnswlib graph that writes only part of its file and says nothing, as hnswlib does on a full disk."""

    def __init__(self, graph, written):
        self._graph, self._written = graph, written

    def save_index(self, path):
        self._graph.save_index(path)
        os.truncate(path, self._written)

    def __getattr__(self, name):
        return getattr(self._graph, name)


@pytest.mark.parametrize("written", [0, 95, 4096])
def test_a_short_write_is_noticed(tmp_path, written):
    with pytest.raises(ResourceError):
        save_graph(FullDisk(graph_of(clustered()), written), tmp_path / "g.bin")


def test_a_write_into_nowhere_is_noticed(tmp_path):
    """hnswlib itself returns as if it had saved."""
    with pytest.raises(ResourceError, match="Only 0 of"):
        save_graph(graph_of(clustered()), tmp_path / "missing" / "g.bin")


def test_without_memory_the_error_says_how_much_is_needed(monkeypatch):
    class NoMemory:
        def __init__(self, **_):
            pass

        def init_index(self, **_):
            raise RuntimeError("Not enough memory")

    monkeypatch.setattr(hnswlib, "Index", NoMemory)
    with pytest.raises(ResourceError, match="GB"):
        graph_of(clustered())


def test_without_hnswlib_the_error_names_the_ways_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.raises(ResourceError, match="hnswlib"):
        graph_of(clustered())
