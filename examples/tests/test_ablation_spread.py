"""Spread and paired differences against scipy's own test and against numbers worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from tests.fixtures.ablation import load

spread = load("spread")
notation = load("notation")
PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=9)


def test_by_hand() -> None:
    found = spread.spread({0: 0.2, 1: 0.4, 4: 0.9})
    assert found.n == 3
    assert found.mean == pytest.approx(0.5)
    assert found.sd == pytest.approx(math.sqrt((0.09 + 0.01 + 0.16) / 2))


def test_difference_by_hand() -> None:
    """Differences .1, .2 and .3: mean .2, standard error .1/sqrt(3), and Student's .975 quantile for 2 degrees is 4.3027."""
    found = spread.difference({0: 0.5, 1: 0.7, 2: 0.9}, {0: 0.4, 1: 0.5, 2: 0.6})
    assert (found.n, found.positive) == (3, 3)
    assert found.mean == pytest.approx(0.2)
    assert found.high - found.mean == pytest.approx(4.3027 * 0.1 / math.sqrt(3), rel=1e-4)


@given(PAIRS)
def test_interval_is_that_of_the_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    first, second = dict(enumerate(a for a, _ in pairs)), dict(enumerate(b for _, b in pairs))
    found = spread.difference(first, second)
    differences = [a - b for a, b in pairs]
    if max(differences) - min(differences) > 1e-6:  # scipy gives up where all are the same
        known = ttest_rel(list(first.values()), list(second.values())).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-9)
    assert found.positive == sum(a > b for a, b in pairs)


def test_only_seeds_that_have_both_are_paired() -> None:
    found = spread.difference({0: 0.5, 1: 0.7, 5: 0.1}, {1: 0.5, 2: 0.9})
    assert (found.n, found.positive, found.low) == (1, 1, None)
    assert found.mean == pytest.approx(0.2)
    assert spread.difference({0: 0.5}, {1: 0.5}) is None
    assert spread.spread({}) is None


def test_notation() -> None:
    assert notation.number(0.7751) == ".775"
    assert notation.number(-0.0502) == "-.050"
    assert notation.number(1.0) == "1.000" and notation.number(10.05) == "10.050"
    assert notation.signed(0.1) == "+.100" and notation.signed(-0.1) == "-.100"
    found = spread.spread({0: 0.75, 1: 0.8})
    assert notation.mean_and_sd(found) == notation.mean_and_sd(found, 2) == ".775 ± .035"
    assert notation.mean_and_sd(found, 5) == ".775 ± .035 (n = 2)"
    assert notation.mean_and_sd(spread.spread({3: 0.75})) == ".750"


def test_table_columns_line_up() -> None:
    lines = notation.table(["a", "b"], [["long name", "1"], ["x", "12345"]]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1] == "| --------- | ----: |"
