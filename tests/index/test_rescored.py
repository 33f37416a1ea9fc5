"""How deep and how wide an approximation is searched, on one whose answers are given."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.index.rescored import UNREACHED, RescoredIndex, reach_recall
from realmctl.index.settings import IndexSettings
from tests.fixtures.index import brute_force, clustered

ROWS = 60


class Partial(RescoredIndex):
    """Finds `ef` of the best rows, and says how many it was asked for."""

    oversampled = 4

    def __init__(self, vectors: np.ndarray, ef: int = ROWS) -> None:
        super().__init__(vectors)
        self.ef, self.matrix, self.asked = ef, vectors, list[int]()

    def find(self, queries_BD, k):
        self.asked.append(k)
        ids = brute_force(self.matrix, queries_BD, k)[1]
        ids[:, self.ef :] = UNREACHED
        return None, ids[:, ::-1]


@pytest.mark.parametrize(("k", "asked"), [(1, [4]), (5, [20]), (6, []), (60, []), (99, [])])
def test_a_search_for_a_tenth_of_the_rows_is_exact(k, asked):
    vectors, queries = clustered(ROWS), clustered(7, seed=1)
    index = Partial(vectors, ef=3)  # a query for five reaches too few rows
    assert (index.search(queries, k)[1] == brute_force(vectors, queries, min(k, ROWS))[1]).all()
    assert index.asked == asked


@pytest.mark.parametrize("k", [1, 14, 16, 99])
def test_the_approximation_is_asked_for_no_more_rows_than_there_are(k):
    vectors, queries = clustered(ROWS), clustered(7, seed=1)
    index = Partial(vectors, ef=3)
    scores, ids = index.search_graph(queries, k)
    best_scores, best = brute_force(vectors, queries, min(k, ROWS))
    assert index.asked == [min(4 * k, ROWS)]
    assert (ids == np.where(np.arange(min(k, ROWS)) < 3, best, UNREACHED)).all()
    np.testing.assert_allclose(scores[:, :3], best_scores[:, :3], rtol=1e-5)
    assert (scores[:, 3:] == -np.inf).all()


@pytest.mark.parametrize(
    ("settings", "ef"),
    [({"min_recall": 1.0}, 8), ({"min_recall": 0.5}, 4), ({"min_recall": 0.1, "ef": 7}, 7), ({"min_recall": 0.0}, 1)],
)
def test_the_narrowest_search_that_reaches_the_floor_is_taken(settings, ef):
    """Of four neighbours, a search of width w finds w at most, and half of the queries are rows, which find themselves."""
    index = Partial(clustered(ROWS))
    wanted = IndexSettings(recall_k=(4,), recall_sample=20, **settings)
    recall = reach_recall(index, index.matrix, wanted, "cpu", (1, 4, 8, 16))
    assert index.ef == ef and recall.k == 4 and (recall.mean >= wanted.min_recall or "ef" in settings)
