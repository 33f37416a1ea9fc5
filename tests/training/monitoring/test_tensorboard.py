"""Live curves: what TensorBoard's own reader finds in the event files is what metrics.jsonl has."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest

from realmctl.errors import ResourceError
from realmctl.training.loop import train
from realmctl.training.settings import TrainSettings
from tests.training.test_loop import Parabola, lines, writer

pytest.importorskip("tensorboard")


def scalars(folder):
    """{metric: {step: value}} that TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    return {name: {event.step: event.value for event in found.Scalars(name)} for name in found.Tags()["scalars"]}


def logged(folder):
    found = {}
    for line in lines(folder):
        for name, value in line.items():
            if name != "step":
                found.setdefault(name, {})[line["step"]] = pytest.approx(value, rel=1e-6)
    return found


def test_the_curves_are_the_records(tmp_path):
    settings = TrainSettings(steps=5, lr=0.1, warmup=0, tensorboard=tmp_path / "runs")
    train(Parabola(), settings, writer(tmp_path / "v3.partial"), "toy")
    found = scalars(tmp_path / "runs/toy/v3")
    assert found == logged(tmp_path / "v3.partial") and set(found) == {"loss", "hits", "lr", "grad_norm"}


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_run_that_continues_has_each_step_once(tmp_path, from_the_start):
    folder, runs = tmp_path / "v1.partial", tmp_path / "runs"
    settings = TrainSettings(steps=6, lr=0.1, warmup=0, checkpoint_every=2, tensorboard=runs)
    first = settings if from_the_start else replace(settings, tensorboard=None)
    with pytest.raises(ZeroDivisionError):
        train(Breaks(), first, writer(folder), "toy")
    train(Parabola(), settings, writer(folder), "toy")
    assert scalars(runs / "toy/v1") == logged(folder)


class Breaks(Parabola):
    def draw(self, step):
        if step == 3:
            raise ZeroDivisionError
        return super().draw(step)


def test_alarms_are_shown_as_text(tmp_path):
    class Alarmed(Parabola):
        def after_step(self, line):
            return {"alarms": ["hub_block"]} if line["step"] == 2 else {}

    settings = TrainSettings(steps=3, lr=0.1, warmup=0, tensorboard=tmp_path / "runs")
    train(Alarmed(), settings, writer(tmp_path / "v1.partial"), "toy")
    [file] = (tmp_path / "runs/toy/v1").iterdir()
    assert b"hub_block" in file.read_bytes() and "alarms" not in scalars(tmp_path / "runs/toy/v1")


def test_without_the_package_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"realmctl\[tensorboard\]"):
        train(Parabola(), TrainSettings(steps=1, lr=1.0, tensorboard=tmp_path), writer(tmp_path / "v1"), "toy")
    assert not list((tmp_path / "v1").iterdir())
