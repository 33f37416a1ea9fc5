"""Reciprocal rank fusion against its definition; hybrid search over other blocks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from realmctl.artifacts import Origin, open_artifact, tokenizer_folder, writing
from realmctl.models.bert.files import scratch_config
from realmctl.models.bert.modules import BertModel
from realmctl.models.retriever import Retriever
from realmctl.models.towers.head_steps import HeadStep
from realmctl.models.towers.sentence_tower import SentenceTower
from realmctl.retrieval.names import HYBRID, TEMPERATURE
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.retrieval.search.methods import Hybrid, reciprocal_ranks, start_method, summed
from realmctl.retrieval.search.profile import SearchProfile
from tests.fixtures.chain import make_index

RANKING = st.lists(st.integers(0, 12), unique=True, max_size=10)


def test_by_hand():
    first, second = (np.array([3.0, 2.0, 1.0]), np.array([7, 3, 5])), (np.array([9.0, 8.0]), np.array([3, 9]))
    scores, rows = summed([first, second], [*map(reciprocal_ranks, (first[0], second[0]))], [1, 1])
    assert rows.tolist() == [3, 7, 9, 5]  # 1/62 + 1/61, 1/61, 1/62, 1/63
    np.testing.assert_allclose(scores * 2, [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63], rtol=1e-6)


def test_a_weight_holds_over_other_blocks_too(chain):
    searchers = [BM25Searcher(chain.blocks, "cpu"), BM25Searcher(chain.blocks, "cpu")]
    first = Hybrid(searchers, 10, (1.0, 0.25), "ranks")
    asked = first.tokens(["Where was Ada Lorn born?"])
    here, there = (search.ranked(asked, 3)[0][0].tolist() for search in (first, first.over(chain.blocks, None)))
    assert here == there and here[0] == pytest.approx(1 / 61)


class Given:
    """A searcher of ten blocks with a score for each; of each question it finds the best of some of them."""

    corpus, wordpiece, unit_score = range(10), None, 1.0

    def __init__(self, seed, *found):
        self.found, self.asked = found, []
        self.score_BN = np.random.default_rng(seed).normal(size=(len(found), 10)).astype(np.float32)

    def ranked(self, tokens, k, among=None):
        self.asked.append(k)
        best = [
            sorted(found, key=lambda row: -own[row])[:k] for own, found in zip(self.score_BN, self.found, strict=True)
        ]
        return [(own[rows], np.array(rows)) for own, rows in zip(self.score_BN, best, strict=True)]


def test_the_ranking_that_is_surer_of_its_first_blocks_counts_more():
    """Scores are from 1 to 0; each ranking weighs as the root of the distance of its first score from its tenth, the encoder's 1.6 times."""
    dense, bm25 = np.linspace(8, 4, 12), np.array([9.0, 6.0])
    weights = np.sqrt([1.6 * (dense[0] - dense[9]), 9.0])
    shares = weights / weights.sum()
    hybrid = Hybrid([Fixed(dense, range(12)), Fixed(bm25, [3, 0])], depth=12)
    [(scores, rows)] = hybrid.ranked([[]], 5)
    expected = {row: shares[0] * (8 - row * 4 / 11 - 4) / 4 for row in range(12)}
    expected[3] += shares[1]
    expected[0] += shares[1] * 6 / 9  # BM25 found two blocks, so the others have 0 and these are not from 1 to 0
    assert rows.tolist() == sorted(expected, key=lambda row: (-expected[row], row))
    np.testing.assert_allclose(scores, [expected[row] for row in rows.tolist()], rtol=1e-5)
    [(scores, rows)] = Hybrid([Fixed(dense, range(12)), Fixed(np.zeros(0), [])], depth=12).ranked([[]], 5)
    assert rows.tolist() == [*range(12)] and scores[0] == 1, "where no word is known the encoder alone counts"
    flat = np.full(12, 2.0)
    [(scores, rows)] = Hybrid([Fixed(flat, range(12)), Fixed(flat, range(12))], depth=12).ranked([[]], 5)
    assert rows.tolist() == [*range(12)] and not scores.any()


def test_the_only_block_is_the_best_one():
    both = [Fixed(np.array([score]), [0], 1) for score in (-3.0, 2.0)]
    [(scores, rows)] = Hybrid(both, depth=12).ranked([[]], 5)
    assert rows.tolist() == [0] and scores.tolist() == [1]


def test_few_blocks_of_negative_scores_are_fused_too():
    dense = np.array([-1.0, -2.0, -4.0])
    hybrid = Hybrid([Fixed(dense, [2, 0, 1], 3), Fixed(np.array([2.0]), [1], 3)], depth=12)
    [(scores, rows)] = hybrid.ranked([[]], 5)
    own, other = np.sqrt(1.6 * 3), np.sqrt(2.0)
    expected = {2: own, 0: own * 2 / 3, 1: other}
    assert rows.tolist() == sorted(expected, key=lambda row: -expected[row])
    np.testing.assert_allclose(scores, sorted((each / (own + other) for each in expected.values()), reverse=True))


@pytest.mark.parametrize(("fusion", "scale"), [("scores", 1), ("ranks", 61)])
def test_the_best_block_of_a_hybrid_search_has_most_of_the_probability(fusion, scale):
    """Fused scores lie between 0 and 1, so they are divided by a temperature: of a block half as good p(z|x) is a few per cent."""
    hybrid = Hybrid([Fixed(np.linspace(8, 4, 12), range(12)), Fixed(np.zeros(0), [])], depth=12, fusion=fusion)
    [(scores, rows)] = hybrid.ranked([[]], 5)
    hybrid.corpus = Texts()
    [hits] = hybrid.hits([scores], [rows])
    expected = np.exp(scores.astype(float) * scale / TEMPERATURE)
    np.testing.assert_allclose([hit.probability for hit in hits], expected / expected.sum(), rtol=1e-5)
    if fusion == "scores":
        assert hits[0].probability > 10 * hits[6].probability


class Texts:
    def blocks(self, rows):
        return dict.fromkeys(rows)


class Fixed:
    """A searcher that finds the same blocks for each question."""

    wordpiece, unit_score = None, 20.0

    def __init__(self, scores, rows, blocks=12):
        self.corpus, self.found = range(blocks), (scores.astype(np.float32), np.array(rows, np.int64))

    def ranked(self, tokens, k, among=None):
        return [self.found for _ in tokens]


@pytest.mark.parametrize("fusion", ["ranks", "scores"])
def test_each_searcher_is_asked_for_the_depth_or_for_more(fusion):
    searchers = [Given(seed, [1, 2, 3]) for seed in range(2)]
    hybrid = Hybrid(searchers, depth=3, fusion=fusion)
    for k in (1, 5):
        hybrid.ranked([[]], k)
    assert [searcher.asked for searcher in searchers] == [[3, 5], [3, 5]]


@given(st.lists(RANKING, min_size=1, max_size=2))
def test_every_block_has_the_sum_of_its_reciprocal_ranks(rankings):
    k = 60
    expected = {
        row: sum(1 / (k + ranking.index(row) + 1) for ranking in rankings if row in ranking)
        for ranking in rankings
        for row in ranking
    }
    given = [(np.ones(len(ranking)), np.array(ranking, np.int64)) for ranking in rankings]
    scores, rows = summed(given, [reciprocal_ranks(own) for own, _ in given], [1.0] * len(given))
    scores = scores * len(given)
    assert rows.tolist() == sorted(expected, key=lambda row: (-expected[row], row))
    assert rows.dtype == np.int64
    np.testing.assert_allclose(scores, [expected[row] for row in rows.tolist()], rtol=1e-6)


def test_hybrid_search_is_the_same_whatever_the_scale_of_the_encoder(chain, tmp_path):
    """`import` without --scale leaves cosines, with it 20 of them: each side must weigh as before."""
    found = []
    for scale in (1.0, 20.0):
        torch.manual_seed(0)
        bert = BertModel(scratch_config("L1-H16", 400, init_std=0.5)).eval()
        tower = SentenceTower(bert, "mean", [HeadStep("normalize", 16)], scale).eval()
        retriever = Retriever(tower, tower, query_length=24, block_length=32, pooling="mean")
        with writing(tmp_path / f"retriever-{scale}", Origin("retriever", "import", 1, {"scale": scale}, {})) as out:
            retriever.save(out.path)
            out.copy_folder("tokenizer", tokenizer_folder(chain.blocks))
        made = open_artifact(tmp_path / f"retriever-{scale}")
        index = make_index(tmp_path / str(scale), chain.blocks, made)
        searches = SearchInputs(blocks=chain.blocks, retriever=made, index=index, precision="fp32")
        for few in (False, True):
            search = start_method(SearchProfile.of(chain.blocks, HYBRID), dataclasses.replace(searches, few=few))
            found.append(search.ranked(search.tokens(["Where was Ada born?", "Ben Mott"]), 9))
    for other in found[1:]:
        for (scores, rows), (its_scores, its_rows) in zip(found[0], other, strict=True):
            assert rows.tolist() == its_rows.tolist()
            np.testing.assert_allclose(scores, its_scores, rtol=1e-4)
