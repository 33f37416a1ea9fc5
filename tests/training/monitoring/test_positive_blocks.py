"""Which candidates tell the answer, and how well gains separate them: against brute force over all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.training.monitoring.positive_blocks import PositiveBlocks, area_under_curve, chance_limit, positives


def brute_force_auc(score, positive):
    pairs = [
        (a, b)
        for a, is_a in zip(score, positive, strict=True)
        if is_a
        for b, is_b in zip(score, positive, strict=True)
        if not is_b
    ]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)


def test_the_area_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(0)
    for _ in range(20):
        score, positive = rng.integers(0, 6, 30).astype(float), rng.random(30) < 0.3
        positive[:2] = [True, False]
        assert area_under_curve(score, positive) == pytest.approx(brute_force_auc(score, positive))
    assert area_under_curve(np.arange(4.0), np.ones(4, bool)) is None
    assert area_under_curve(np.arange(4.0), np.zeros(4, bool)) is None


def test_a_block_tells_if_it_holds_the_hidden_wordpieces_side_by_side(chain):
    corpus = Corpus(chain.blocks)
    targets = np.asarray(corpus.tokens(5)[2:5], dtype=np.int64)
    rows = np.array([[5, -1, -2, *range(len(corpus))]])
    found = positives([targets], rows, corpus)[0]
    text = [" ".join(map(str, [*corpus.tokens(row)])) for row in range(len(corpus))]
    needle = " ".join(map(str, targets))
    assert found[:3].tolist() == [True, False, False]
    assert found[3:].tolist() == [f" {needle} " in f" {words} " for words in text]


def test_shares_are_counted_by_query():
    blocks = PositiveBlocks()
    gain = np.array([[1.0, 3.0, 9.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
    score = np.array([[5.0, 1.0, 9.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
    tells = np.array([[False, True, False], [False, True, False], [True, True, True]])
    present = np.array([[True, True, False], [True, True, True], [False, False, False]])
    assert blocks.measured() == {}
    blocks.add(gain, score, tells, present)
    gains, labels = [1.0, 3.0, 2.0, 1.0, 0.0], [False, True, False, True, False]
    assert blocks.measured() == {
        "gain_auc": pytest.approx(brute_force_auc(gains, labels)),
        "any_positive": 1.0,
        "first_positive": 0.5,
        "favourite_positive": 0.5,
    }


def test_scores_without_a_relation_stay_below_the_limit_of_chance():
    rng = np.random.default_rng(0)
    positive = np.arange(40) < 7
    areas = [area_under_curve(rng.random(40), positive) for _ in range(4000)]
    error = (chance_limit(7, 33) - 0.5) / 2
    assert np.std(areas) == pytest.approx(error, rel=0.05)
    assert np.mean(np.array(areas) > chance_limit(7, 33)) < 0.05


def test_what_pretrain_checks_before_its_first_step():
    blocks = PositiveBlocks()
    tells, present = np.array([[True, False, False, False]] * 9), np.ones((9, 4), bool)
    blocks.add(np.float32(tells), np.zeros((9, 4), np.float32), tells, present)
    assert blocks.at_start() == {
        "gain_auc": 1.0,
        "any_positive": 1.0,
        "gain_auc_above_chance": pytest.approx(1 - chance_limit(9, 27)),
    }
    nothing = PositiveBlocks()
    nothing.add(np.float32(tells), np.zeros((9, 4), np.float32), ~present, present)
    assert nothing.at_start() == {"any_positive": 0.0}


def test_no_candidate_at_all_is_nothing_told():
    assert PositiveBlocks().at_start() == {"any_positive": 0.0}
