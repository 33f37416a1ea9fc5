"""Reciprocal rank fusion against its definition; hybrid search over other blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
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


class Given:
    """A searcher of ten blocks with a score for each; of each question it finds the best of some of them."""

    corpus, wordpiece = range(10), None

    def __init__(self, seed, *found):
        self.found, self.asked = found, []
        self.score_BN = np.random.default_rng(seed).normal(size=(len(found), 10)).astype(np.float32)

    def ranked(self, tokens, k):
        self.asked.append(k)
        best = [
            sorted(found, key=lambda row: -own[row])[:k] for own, found in zip(self.score_BN, self.found, strict=True)
        ]
        return [(own[rows], np.array(rows)) for own, rows in zip(self.score_BN, best, strict=True)]

    def scores(self, tokens, row_BK):
        return torch.from_numpy(np.take_along_axis(self.score_BN, row_BK, 1))


def test_the_scores_of_every_block_that_one_of_them_finds_are_added():
    first, second = Given(0, [1, 2, 3], [4]), Given(1, [3, 5], [4])
    hybrid = Hybrid([first, second], depth=2, weights=(1.0, 0.25), fusion="scores")
    total_BN = first.score_BN + 0.25 * second.score_BN
    found = [{*first.ranked([], 2)[0][1], 3, 5}, {4}]
    for own, wanted, (scores, rows) in zip(total_BN, found, hybrid.ranked([[], []], 1), strict=True):
        assert rows.tolist() == sorted(wanted, key=lambda row: -own[row])
        np.testing.assert_allclose(scores, own[rows], rtol=1e-6)


@pytest.mark.parametrize("fusion", ["ranks", "scores"])
def test_each_searcher_is_asked_for_the_depth_or_for_more(fusion):
    searchers = [Given(seed, [1, 2, 3]) for seed in range(2)]
    hybrid = Hybrid(searchers, depth=3, fusion=fusion)
    for k in (1, 5):
        hybrid.ranked([[]], k)
    assert [searcher.asked for searcher in searchers] == [[3, 5], [3, 5]]


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
