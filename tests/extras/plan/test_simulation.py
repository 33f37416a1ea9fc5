"""The simulation of trainer and refresher against runs whose ages follow by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.extras.plan.simulation import Refreshing, devices_for_age, simulate


def run(**changes):
    values = {"steps": 200, "step_seconds": 1.0, "every": 10, "embed_seconds": 4.0, "spread": 0.0}
    return Refreshing(**{**values, **changes})


def test_an_index_that_is_made_within_a_period_is_at_most_a_period_and_its_own_time_old():
    """A snapshot of step 10 k is live from step 10 k + 4 on, so the ages go 4, 5, ..., 13, and again 4."""
    found = simulate(run())
    assert (found.largest, found.waited_seconds, found.seconds) == (13, 0.0, 200.0)
    later = [(step - 4) % 10 + 4 for step in range(14, 200)]
    assert found.mean == pytest.approx((sum(range(14)) + sum(later)) / 200)


def test_an_inline_refresh_stops_training_and_leaves_ages_below_a_period():
    found = simulate(run(inline=True))
    assert (found.largest, found.refreshes, found.seconds) == (9, 19, 200 + 19 * 4)
    assert (found.mean, found.median, found.p95) == (4.5, 4.5, 9)


def test_two_that_share_a_device_take_the_time_of_both():
    found = simulate(run(shared=True))
    assert found.seconds == pytest.approx(200 + found.refreshes * 4, abs=4)
    assert found.mean == simulate(run()).mean, "a step and an index slow down alike"


def test_a_slow_refresher_takes_the_newest_snapshot():
    """An index takes 25 steps, so two or three snapshots are left out for each that is taken."""
    found = simulate(run(embed_seconds=25.0, steps=1000))
    assert found.refreshes == pytest.approx(1000 / 25, abs=2)
    assert 25 + 5 < found.mean < 25 + 25


def test_training_waits_at_the_age_bound():
    found = simulate(run(embed_seconds=100.0, max_age=30))
    assert found.largest == 30 and found.waited_seconds > 0
    assert found.seconds == pytest.approx(200 + found.waited_seconds)


def test_times_that_vary_have_the_same_mean():
    found = simulate(run(spread=0.5, steps=5000, inline=True))
    assert found.seconds == pytest.approx(5000 + 499 * 4, rel=0.05)


@settings(deadline=None)
@given(
    every=st.integers(1, 40),
    refresh=st.floats(0.1, 90),
    shared=st.booleans(),
    bound=st.none() | st.integers(1, 4),
    seed=st.integers(0, 5),
)
def test_ages_and_times_stay_within_their_bounds(every, refresh, shared, bound, seed):
    most = None if bound is None else bound * every
    found = simulate(run(every=every, embed_seconds=refresh, shared=shared, max_age=most, spread=0.2, steps=120), seed)
    assert 0 <= found.mean <= found.largest < 120 and found.median <= found.p95 <= found.largest
    assert most is None or found.largest <= most + 1
    assert found.waited_seconds >= 0 and found.refreshes <= 120 // every
    assert found == simulate(
        run(every=every, embed_seconds=refresh, shared=shared, max_age=most, spread=0.2, steps=120), seed
    )


def test_devices_for_a_target_age_are_the_fewest_that_keep_it():
    slow = run(embed_seconds=400.0, steps=2000)
    devices = devices_for_age(25, slow)

    def p95(count):
        return simulate(run(embed_seconds=400.0 / count, steps=600)).p95

    assert p95(devices) <= 25 < p95(devices - 1)
    assert devices_for_age(5, slow) is None, "snapshots are ten steps apart"


@pytest.mark.parametrize("target", [12, 14, 16, 25, 600])
def test_the_fewest_devices_are_those_of_a_search_one_by_one(target):
    slow = run(embed_seconds=100.0, steps=600)

    def p95(count):
        return simulate(run(embed_seconds=100.0 / count, steps=600)).p95

    assert devices_for_age(target, slow) == next((count for count in range(1, 200) if p95(count) <= target), None)
