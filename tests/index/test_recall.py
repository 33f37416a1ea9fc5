from __future__ import annotations

import numpy as np
import pytest

from realmctl.index.exact import ExactIndex
from realmctl.index.recall import NONE, RecallSample, sample_queries, wilson
from tests.fixtures.index import clustered


class Blind(ExactIndex):
    """ExactIndex search that cannot see some of the rows: its recall can be counted by hand."""

    def __init__(self, matrix: np.ndarray, hidden: range) -> None:
        super().__init__(matrix)
        self._hidden = hidden

    def search(self, queries_BD, k):
        scores, ids = super().search(queries_BD, self.count)
        seen = [[i for i, row in enumerate(own) if row not in self._hidden][:k] for own in ids]
        return np.take_along_axis(scores, np.array(seen), 1), np.take_along_axis(ids, np.array(seen), 1)


def test_exact_search_has_recall_one():
    matrix = clustered(300)
    recall = RecallSample(matrix, depths=(8,), sample=100, seed=3).measure(ExactIndex(matrix).search)
    assert (recall.mean, recall.queries, recall.k) == (1.0, 100, 8)
    assert recall.low < 0.99 and recall.high == pytest.approx(1.0)


def test_recall_is_the_share_of_true_neighbours_found():
    matrix = clustered(60)
    sample = RecallSample(matrix, depths=(5,), sample=60, seed=3)
    true = ExactIndex(matrix).search(sample.queries, 60)[1]
    wanted = [[i for i in row if i != own][:5] for row, own in zip(true, sample.own, strict=True)]
    share = np.mean([[i >= 20 for i in row] for row in wanted])
    assert sample.measure(Blind(matrix, range(20)).search).mean == pytest.approx(share)
    assert 0.3 < share < 0.9


def test_of_several_depths_the_worst_recall_counts():
    """The search finds the three best rows and the row itself, and nothing else."""
    matrix = clustered(60)
    exact = ExactIndex(matrix)

    def shallow(queries_BD, k):
        scores, ids = exact.search(queries_BD, k)
        scores[:, 4:] = -np.inf
        return scores, ids

    recall = RecallSample(matrix, depths=(2, 20), sample=60, seed=3).measure(shallow)
    assert recall.k == 20 and 3 / 20 <= recall.mean <= 4 / 20


def test_equal_blocks_stand_in_for_each_other():
    matrix = np.repeat(clustered(20), 4, axis=0)
    one_of_four_hidden = Blind(matrix, range(0, 80, 4))
    assert RecallSample(matrix, depths=(2,), sample=80, seed=0).measure(one_of_four_hidden.search).mean == 1.0


@pytest.mark.parametrize("count", [1, 2, 5])
def test_fewer_rows_than_answers(count):
    matrix = clustered(count)
    recall = RecallSample(matrix, depths=(8,), sample=1000, seed=0).measure(ExactIndex(matrix).search)
    assert (recall.queries, recall.mean) == (count, 1.0)


def test_sample_is_deterministic_half_rows_half_moved():
    matrix = clustered(100)
    queries, own = sample_queries(matrix, 40, seed=5)
    again, _ = sample_queries(matrix, 40, seed=5)
    other, _ = sample_queries(matrix, 40, seed=6)
    assert (queries == again).all() and not np.array_equal(queries, other)
    assert (queries[:20] == matrix[own[:20]]).all() and (own[20:] == NONE).all()
    assert len(set(own[:20])) == 20
    assert not any((row == matrix).all(axis=1).any() for row in queries[20:])


def test_wilson_interval_has_its_textbook_values():
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(1.0, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0.0, 10)[0] == 0.0
