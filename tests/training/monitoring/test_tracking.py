"""Trackers: what TensorBoard's own reader finds in the event files is what metrics.jsonl has; stand-ins get the documented calls."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import replace
from types import SimpleNamespace

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
    settings = TrainSettings(steps=5, lr=0.1, warmup=0, track=f"tensorboard:{tmp_path / 'runs'}")
    train(Parabola(), settings, writer(tmp_path / "v3.partial"), "toy")
    found = scalars(tmp_path / "runs/toy/v3")
    assert found == logged(tmp_path / "v3.partial") and set(found) == {"loss", "hits", "lr", "grad_norm"}


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_run_that_continues_has_each_step_once(tmp_path, from_the_start):
    folder, runs = tmp_path / "v1.partial", tmp_path / "runs"
    settings = TrainSettings(steps=6, lr=0.1, warmup=0, checkpoint_every=2, track=f"tensorboard:{runs}")
    first = settings if from_the_start else replace(settings, track=None)
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
    settings = TrainSettings(steps=3, lr=0.1, warmup=0, track=f"tensorboard:{tmp_path / 'runs'}")
    train(Alarmed(), settings, writer(tmp_path / "v1.partial"), "toy")
    [file] = (tmp_path / "runs/toy/v1").iterdir()
    assert b"hub_block" in file.read_bytes() and "alarms" not in scalars(tmp_path / "runs/toy/v1")


def test_without_the_package_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"realmctl\[tensorboard\]"):
        train(
            Parabola(), TrainSettings(steps=1, lr=1.0, track=f"tensorboard:{tmp_path}"), writer(tmp_path / "v1"), "toy"
        )
    assert not list((tmp_path / "v1").iterdir())


class Alarmed(Parabola):
    def after_step(self, line):
        return {"alarms": ["hub_block"]} if line["step"] == 2 else {}


def stand_in(monkeypatch, name: str, functions: tuple[str, ...]) -> list:
    """A module that remembers the calls of its functions, and greets on stdout as trackio does."""
    calls: list = []

    def remember(function: str):
        return lambda *given, **named: print(function) or calls.append((function, *given, named))

    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**{each: remember(each) for each in functions}))
    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted: object())
    return calls


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_wandb_and_trackio_get_every_record_by_one_call(tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    calls = stand_in(monkeypatch, name, ("init", "log", "finish"))
    out = writer(tmp_path / "v1.partial")
    train(Alarmed(), TrainSettings(steps=3, lr=0.1, warmup=0, track=f"{name}:mine"), out, "toy")
    first, *logged_calls, last = calls
    assert first == ("init", {"project": "mine", "name": "toy/v1", "config": out.origin.settings, "resume": "allow"})
    assert last == ("finish", {})
    told = [{**values, "step": named["step"]} for _, values, named in logged_calls]
    assert told == [
        line | ({"alarms": "hub_block"} if "alarms" in line else {}) for line in lines(tmp_path / "v1.partial")
    ]
    assert "init" not in capsys.readouterr().out
    assert os.environ.get("WANDB_MODE") == ("offline" if name == "wandb" else None)


def test_mlflow_gets_numbers_as_metrics_and_alarms_as_tags(tmp_path, monkeypatch, capsys):
    functions = ("set_tracking_uri", "set_experiment", "start_run", "log_params", "log_metrics", "set_tag", "end_run")
    calls = stand_in(monkeypatch, "mlflow", functions)
    train(
        Alarmed(),
        TrainSettings(steps=3, lr=0.1, warmup=0, track="mlflow:sqlite:///x.db"),
        writer(tmp_path / "v1"),
        "toy",
    )
    assert calls[0] == ("set_tracking_uri", "sqlite:///x.db", {}) and calls[2] == ("start_run", {"run_name": "toy/v1"})
    told = [{**call[1], "step": call[2]["step"]} for call in calls if call[0] == "log_metrics"]
    assert told == [
        {name: value for name, value in line.items() if name != "alarms"} for line in lines(tmp_path / "v1")
    ]
    assert "start_run" not in capsys.readouterr().out
    assert ("set_tag", "alarms at step 2", "hub_block", {}) in calls and calls[-1] == ("end_run", {})
