"""Curves of a log: what thinning keeps, what smoothing means, when indexes were taken up."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.errors import InputError
from realmctl.extras.report.curves import Curve, read_run
from tests.fixtures.chain import metrics_of, pretrain

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400)


def curve(values):
    return Curve(np.arange(1.0, len(values) + 1), np.array(values, dtype=np.float64))


def logged(tmp_path, *lines):
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return SimpleNamespace(file=lambda name: tmp_path / name)


@given(VALUES, st.integers(2, 60))
def test_thinning_keeps_points_and_both_extremes(values, most):
    full, thin = curve(values), curve(values).thinned(most)
    assert len(thin.step) <= most
    assert set(zip(thin.step, thin.value, strict=True)) <= set(zip(full.step, full.value, strict=True))
    assert (thin.value.min(), thin.value.max()) == (full.value.min(), full.value.max())
    assert np.all(np.diff(thin.step) > 0)


@pytest.mark.parametrize("count", [40, 60, 61, 130, 1001])
@pytest.mark.parametrize("most", [2, 7, 60])
def test_smoothing_is_the_mean_around(count, most):
    values = np.random.default_rng(count).normal(size=count).tolist()
    smooth, width = curve(values).smoothed(most), count // 20
    assert smooth is not None
    assert 2 <= len(smooth.step) <= most and smooth.step[0] == 1 and smooth.step[-1] == count
    for step, value in zip(smooth.step.astype(int), smooth.value, strict=True):
        first = step - 1 - width // 2
        assert value == pytest.approx(np.mean(values[max(0, first) : first + width]), abs=1e-6)


def test_a_short_curve_is_not_smoothed():
    assert curve([1.0] * 39).smoothed() is None


def test_a_pretraining_run(chain, tmp_path):
    run = read_run(pretrain(chain, steps=7).make(tmp_path / "model"))
    lines = metrics_of(run.artifact)
    for name in ("loss", "retrieval_utility", "null_share", "index_age_steps"):
        assert run.curves[name].value.tolist() == [line[name] for line in lines]
        assert run.curves[name].step.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert run.refreshes == [(3, 3), (6, 6)] and run.waited == (0, 0) and run.alarms == [(1, "reader_at_chance")]


def test_refreshes_in_the_background(tmp_path):
    """The snapshot of step 4 is searched first at step 7 of 0, 1, ..; that of step 8 at step 9, after a wait."""
    indexes = [0] * 7 + [4] * 2 + [8] * 3
    lines = [{"step": step + 1, "index_age_steps": step - made} for step, made in enumerate(indexes)]
    lines[9]["index_wait_seconds"] = 1.5
    run = read_run(logged(tmp_path, *lines))
    assert run.refreshes == [(4, 7), (8, 9)] and run.waited == (1, 1.5)


def test_records_between_and_alarms(tmp_path):
    """What only some steps log is a shorter curve; an alarm is text, a list of texts or an object."""
    lines = [
        {"step": 0, "recall@5": 0.25, "alarms": None},
        {"step": 1, "loss": 2.0, "alarms": "recall fell"},
        '{"step": 2, "loss": NaN, "grad_norm": Infinity}',
        {"step": 3, "loss": 1, "recall@5": 0.5, "alarms": ["one", {"name": "two"}], "note": "text", "odd": True},
    ]
    run = read_run(logged(tmp_path, *lines))
    assert run.curves["loss"].step.tolist() == [1, 3] and run.curves["loss"].value.tolist() == [2, 1]
    assert run.curves["recall@5"].step.tolist() == [0, 3]
    assert set(run.curves) == {"loss", "recall@5"} and run.refreshes == []
    assert run.alarms == [(1, "recall fell"), (3, "one"), (3, '{"name": "two"}')]


@pytest.mark.parametrize("line", ["{", "[]", "3", '{"loss": 1}', '{"step": "x"}', "[" * 10**5])
def test_a_damaged_line_is_named(tmp_path, line):
    with pytest.raises(InputError, match=r"metrics\.jsonl:2: "):
        read_run(logged(tmp_path, {"step": 1}, line))
