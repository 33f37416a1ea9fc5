"""Which examples a step takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.training.data.order import DataOrder, MixedDataOrder, SpanDraws, ThinnedDataOrder


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 5))
def test_every_pass_takes_every_example_once(count, batch_size, seed):
    order = DataOrder(count, batch_size, seed)
    taken = [number for step in range(-(-3 * count // batch_size)) for number in order.batch(step).tolist()]
    for start in (0, count, 2 * count):
        assert sorted(taken[start : start + count]) == list(range(count))


def test_a_step_is_the_same_whatever_was_asked_before():
    order, again = DataOrder(100, 7, 3), DataOrder(100, 7, 3)
    forwards = [order.batch(step).tolist() for step in range(40)]
    assert [again.batch(step).tolist() for step in reversed(range(40))] == forwards[::-1]


def test_passes_and_seeds_differ():
    assert DataOrder(50, 50, 0).batch(0).tolist() != DataOrder(50, 50, 0).batch(1).tolist()
    assert DataOrder(50, 50, 0).batch(0).tolist() != DataOrder(50, 50, 1).batch(0).tolist()


def test_a_mixed_batch_takes_from_both_orders_as_they_are():
    first, second = DataOrder(7, 3, 0), DataOrder(5, 2, 1)
    mixed = MixedDataOrder(first, second)
    for step in range(12):
        taken = mixed.batch(step).tolist()
        assert taken == [*first.batch(step).tolist(), *(7 + second.batch(step)).tolist()]


def test_of_the_thinned_examples_every_pass_takes_others():
    order = ThinnedDataOrder(10, 40, 0.1, 14, 0)
    passes = [sorted(order.batch(step).tolist()) for step in range(30)]
    assert all(taken[:10] == list(range(10)) and len(set(taken)) == 14 for taken in passes)
    assert len({number for taken in passes for number in taken[10:]}) > 30


def test_each_span_of_a_block_is_drawn_as_often_as_the_others():
    """Three blocks have 2, 1 and 3 spans."""
    order = SpanDraws(DataOrder(3, 3, 0), np.array([0, 2, 3]), 6, seed=0)
    taken = np.concatenate([order.batch(step) for step in range(600)])
    assert np.bincount(taken, minlength=7) / 600 == pytest.approx([1 / 2, 1 / 2, 1, 1 / 3, 1 / 3, 1 / 3, 0], abs=0.07)
