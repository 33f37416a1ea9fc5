"""Training logs as arrays, smoothing against a loop, and the time in which at least one stage ran."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.ablation import load, write_output

circumstances = load("circumstances")
curves = load("curves")
results = load("results")
VALUES = st.lists(st.one_of(st.floats(-5, 5), st.just(np.nan)), min_size=1, max_size=30)


def test_log_lines_without_the_number_are_gaps(tmp_path: Path) -> None:
    log = '{"step": 1, "loss": 2, "u": 5}\n{"alarms": 1, "u": 9}\n{"step": 2, "loss": 1}\n{"step": 3, "loss": 1, "u": 7}\n'
    log += '{"step": 3, "after": 4}\n'  # what is measured when training is over
    write_output(tmp_path, 0, "realm", {}, log)
    write_output(tmp_path, 1, "realm", {}, '{"step": 1, "loss": 2, "u": 1}\n')
    write_output(tmp_path, 2, "realm", {})  # a model without a log
    runs = results.open_runs(tmp_path, range(4))  # and a seed not begun
    values = curves.logged(runs, "realm", "u")
    np.testing.assert_array_equal(values, [[5, np.nan, 7], [1, np.nan, np.nan]])
    np.testing.assert_array_equal(curves.mean_over_runs(values), [3, np.nan, 7])
    np.testing.assert_array_equal(curves.logged(runs, "realm", "after"), [[np.nan, np.nan, 4]])
    assert curves.logged(runs, "realm", "never logged").shape == (0, 0)


@given(VALUES, st.integers(0, 6))
def test_smoothing_is_the_mean_of_the_neighbours(values: list[float], half: int) -> None:
    row = np.array(values)
    half = min(half, (len(row) - 1) // 2)
    around = [row[max(0, at - half) : at + half + 1] for at in range(len(row))]
    expected = [np.mean(near[np.isfinite(near)]) if np.isfinite(near).any() else np.nan for near in around]
    found = curves.smoothed(row[None], 2 * half + 1)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def stage(start: str, end: str, seconds: float) -> SimpleNamespace:
    return SimpleNamespace(manifest={"time": f"2026-01-01T{end}+00:00", "seconds": seconds, "start": start})


def test_busy_time_counts_what_ran_together_once() -> None:
    side_by_side = [stage("10:00:00", "10:10:00", 600), stage("10:05:00", "10:15:00", 600)]
    inside = stage("10:06:00", "10:07:00", 60)
    later = stage("12:00:00", "12:01:00", 60)
    assert circumstances.busy_seconds([later, inside, *side_by_side]) == pytest.approx(15 * 60 + 60)
    assert circumstances.busy_seconds([]) == 0
