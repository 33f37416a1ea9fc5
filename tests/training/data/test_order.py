"""Which examples a step takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from realmctl.training.data.order import DataOrder, MixedDataOrder


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
