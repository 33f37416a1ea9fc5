"""Reciprocal rank fusion against its definition; hybrid search over other blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.retrieval.search.methods import Hybrid, reciprocal_rank_fusion

RANKING = st.lists(st.integers(0, 12), unique=True, max_size=10)


def test_by_hand():
    scores, rows = reciprocal_rank_fusion([np.array([7, 3, 5]), np.array([3, 9])], k=60)
    assert rows.tolist() == [3, 7, 9, 5]  # 1/62 + 1/61, 1/61, 1/62, 1/63
    np.testing.assert_allclose(scores, [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63], rtol=1e-6)


def test_a_weight_holds_over_other_blocks_too(chain):
    searchers = [BM25Searcher(chain.blocks, "cpu"), BM25Searcher(chain.blocks, "cpu")]
    first = Hybrid(searchers, 60, 10, (1.0, 0.25))
    asked = first.tokens(["Where was Ada Lorn born?"])
    here, there = (search.ranked(asked, 3)[0][0].tolist() for search in (first, first.over(chain.blocks, None)))
    assert here == there and here[0] == pytest.approx(1.25 / 61)


@given(st.lists(RANKING, min_size=1, max_size=2), st.sampled_from([1.0, 60.0]))
def test_every_block_has_the_sum_of_its_reciprocal_ranks(rankings, k):
    expected = {
        row: sum(1 / (k + ranking.index(row) + 1) for ranking in rankings if row in ranking)
        for ranking in rankings
        for row in ranking
    }
    scores, rows = reciprocal_rank_fusion([np.array(ranking, np.int64) for ranking in rankings], k)
    assert rows.tolist() == sorted(expected, key=lambda row: (-expected[row], row))
    assert scores.dtype == np.float32 and rows.dtype == np.int64
    np.testing.assert_allclose(scores, [expected[row] for row in rows.tolist()], rtol=1e-6)
