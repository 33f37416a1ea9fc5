from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.index import exact
from realmctl.index.exact import ExactIndex, best_columns
from tests.fixtures.index import brute_force, clustered

few_values = st.integers(-2, 2).map(float)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    rows=st.integers(1, 40),
    chunk=st.integers(1, 12),
    k=st.integers(1, 50),
    storage=st.sampled_from([np.float32, np.float16, np.int8]),
)
def test_equals_brute_force_ties_and_chunks_included(data, rows, chunk, k, storage):
    """Small integers make most scores tie, so the order of ids is tested at every chunk border."""
    matrix = data.draw(arrays(np.float32, (rows, 3), elements=few_values)).astype(storage)
    queries = data.draw(arrays(np.float32, (4, 3), elements=few_values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ROWS_AT_ONCE", chunk)
        patch.setattr(exact, "ROWS_CONVERTED", data.draw(st.integers(1, 12)))
        scores, ids = ExactIndex(matrix).search(queries, k)
    wanted_scores, wanted_ids = brute_force(matrix, queries, k)
    assert (ids == wanted_ids).all()
    assert (scores == wanted_scores).all()
    assert (scores.dtype, ids.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize("seed", range(40))
def test_what_was_found_before_does_not_hide_what_is_better(seed, monkeypatch):
    """Later chunks are searched above the k-th score so far: by narrow groups, by all columns, or not at all. Ties as before."""
    random = np.random.default_rng(seed)
    matrix = random.integers(-4, 9, (random.integers(20, 400), 2)).astype(np.float32)
    queries, k = random.integers(-2, 3, (3, 2)).astype(np.float32), int(random.integers(1, 40))
    monkeypatch.setattr(exact, "ROWS_AT_ONCE", int(random.integers(8, 60)))
    monkeypatch.setattr(exact, "GROUP", int(random.integers(1, 5)))
    scores, ids = ExactIndex(matrix).search(queries, k)
    wanted_scores, wanted_ids = brute_force(matrix, queries, k)
    assert (ids == wanted_ids).all() and (scores == wanted_scores).all()


@settings(max_examples=100, deadline=None)
@given(scores=arrays(np.float32, (3, 17), elements=few_values), k=st.integers(1, 20))
def test_best_columns_takes_the_lowest_ids_and_says_where_it_may_not(scores, k):
    check_best_columns(scores, k)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), columns=st.integers(20, 70), k=st.integers(1, 6), group=st.integers(1, 5))
def test_best_columns_by_groups_takes_the_same(data, columns, k, group):
    """Narrow groups, so that the short cut is taken; a rest that fills no group; ties across groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "GROUP", group)
        check_best_columns(data.draw(arrays(np.float32, (2, columns), elements=few_values)), k)


@pytest.mark.parametrize("best", [0, 191, 192, 199])
def test_the_best_column_is_found_wherever_it_stands(best):
    """Of 200 columns the last 8 fill no group."""
    scores = -np.arange(200, dtype=np.float32)[None]
    scores[0, best] = 1
    check_best_columns(scores, 1)


def check_best_columns(scores, k):
    found, columns, tied = (part.numpy() for part in best_columns(torch.from_numpy(scores), k))
    order = np.argsort(-scores, axis=1, kind="stable")
    wanted, falling = order[:, :k], np.take_along_axis(scores, order, axis=1)
    assert (found == falling[:, :k]).all() and (found == np.take_along_axis(scores, columns, axis=1)).all()
    equal = falling[:, k - 1 : k] == falling[:, k : k + 1] if k < scores.shape[1] else np.zeros((len(scores), 1), bool)
    assert (tied == np.where(equal, falling[:, k - 1 : k] if equal.any() else 0, -np.inf)).all()
    assert ((columns == wanted) | (found == tied)).all(), "only of the columns with the last score may others be taken"


def test_more_queries_than_at_once(monkeypatch):
    monkeypatch.setattr(exact, "QUERIES_AT_ONCE", 7)
    matrix, queries = clustered(90), clustered(31, seed=1)
    assert (ExactIndex(matrix).search(queries, 5)[1] == brute_force(matrix, queries, 5)[1]).all()


def test_half_precision_storage_is_searched_in_float32():
    matrix, queries = clustered(200).astype(np.float16), clustered(9, seed=2)
    scores, ids = ExactIndex(matrix).search(queries, 6)
    wanted_scores, wanted_ids = brute_force(matrix, queries, 6)
    assert (ids == wanted_ids).all()
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-5)


def test_no_queries_give_no_answers():
    scores, ids = ExactIndex(clustered(5)).search(np.empty((0, 16), np.float32), 3)
    assert scores.shape == ids.shape == (0, 3)


def test_vectors_returns_rows_of_any_shape_of_ids():
    matrix = clustered(20).astype(np.float16)
    rows = ExactIndex(matrix).vectors(np.array([[3, 1], [1, 19]]))
    assert rows.dtype == np.float32
    assert (rows == matrix[[[3, 1], [1, 19]]]).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_queries_that_are_not_finite_are_refused(bad):
    queries = clustered(4)
    queries[2, 5] = bad
    with pytest.raises(InputError, match="row 2"):
        ExactIndex(clustered()).search(queries, 3)


def test_queries_of_another_dimension_are_refused():
    with pytest.raises(MismatchError, match="16"):
        ExactIndex(clustered()).search(clustered(2, dimension=15), 3)
    with pytest.raises(ConfigError, match="batch"):
        ExactIndex(clustered()).search(clustered(2)[0], 3)


def test_less_than_one_answer_is_refused():
    with pytest.raises(ConfigError):
        ExactIndex(clustered()).search(clustered(2), 0)
