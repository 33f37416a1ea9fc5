"""The paired bootstrap beside scipy's, and how often its interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from realmctl.extras.comparison.paired import FEWEST, Paired, paired


def values(seed: int, count: int = 60, gain: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    base = rng.random(count)
    return base + rng.normal(gain, 0.2, count), base


@pytest.mark.parametrize("gain", [-0.1, 0.0, 0.1])
def test_the_interval_is_that_of_scipy(gain):
    own, base = values(1, gain=gain)
    found = paired([own], [base])
    theirs = stats.bootstrap(
        (own, base), lambda a, b: np.mean(a - b), paired=True, method="percentile", vectorized=False, rng=0
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=3e-3)
    assert found.difference == pytest.approx((own - base).mean()) == pytest.approx(found.mean - found.base)
    assert found == paired([own], [base])  # a fixed seed


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Of 300 samples of 40 queries, 95 % within three standard errors, and those below the truth are as many as those above."""
    found = [paired(*([each] for each in values(seed, 40, 0.05)), draws=500) for seed in range(300)]
    above, below = (sum(each.low > 0.05 for each in found), sum(each.high < 0.05 for each in found))
    assert 3 <= above + below <= 30 and abs(above - below) <= 14


def test_who_won_and_lost():
    found = paired([np.array([1.0, 0.0, 0.5, 0.5 + 1e-15] * 3)], [np.array([0.0, 1.0, 0.5, 0.5] * 3)])
    assert (found.wins, found.losses, found.equal) == (3, 3, 6) and not found.shown_below
    assert paired([np.zeros(20)], [np.ones(20)]).shown_below and not paired([np.ones(20)], [np.zeros(20)]).shown_below
    assert not paired([np.ones(20)], [np.ones(20)]).shown_below


def test_few_queries_have_no_interval():
    few = paired([np.zeros(FEWEST - 1)], [np.ones(FEWEST - 1)])
    assert few == Paired(0.0, 1.0, -1.0, None, None, 0, FEWEST - 1, 0) and not few.shown_below
    assert paired([np.zeros(FEWEST)], [np.ones(FEWEST)]).low == -1.0


def test_collections_count_alike_and_queries_are_drawn_within_each():
    """A collection that only gains and one that only loses: the mean is certain, though their queries differ."""
    found = paired([np.ones(10), np.zeros(1000)], [np.zeros(10), np.ones(1000)])
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.0) and (found.wins, found.losses) == (10, 1000)
