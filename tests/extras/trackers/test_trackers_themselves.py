"""The packages of the trackers, where they are installed: what each has stored after a failure and a restart is what metrics.jsonl has."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from realmctl.training.loop import train
from realmctl.training.settings.base import TrainSettings
from tests.fixtures.parabola import Breaks, Parabola, lines, writer

pytestmark = pytest.mark.slow


def fail_and_restart(folder, track):
    """{step: loss} of a training that fails in its fourth step and continues after its second."""
    settings = TrainSettings(steps=6, lr=0.1, warmup=0, checkpoint_every=2, track=track)
    with pytest.raises(ZeroDivisionError):
        train(Breaks(), settings, writer(folder / "v1.partial"), "toy")
    train(Parabola(), settings, writer(folder / "v1.partial"), "toy")
    return {line["step"]: pytest.approx(line["loss"], rel=1e-6) for line in lines(folder / "v1.partial")}


def rows(database, query):
    with closing(sqlite3.connect(database)) as opened:
        return opened.execute(query).fetchall()


def test_mlflow(tmp_path):
    pytest.importorskip("mlflow")
    database = tmp_path / "runs.db"
    losses = fail_and_restart(tmp_path, f"mlflow:sqlite:///{database}")
    assert dict(rows(database, "select step, value from metrics where key = 'loss' order by timestamp")) == losses
    assert rows(database, "select name, status from runs") == [("toy/v1", "FINISHED")]


def test_trackio(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    losses = fail_and_restart(tmp_path, "trackio:toys")
    [database] = (tmp_path / "trackio").glob("toys*.db")
    found = rows(database, "select run_name, step, json_extract(metrics, '$.loss') from metrics order by id")
    assert {name for name, _, _ in found} == {"toy/v1"} and {step: loss for _, step, loss in found} == losses


def test_wandb(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    losses = fail_and_restart(tmp_path, "wandb:toys")
    runs = sorted((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(losses) == 6 and len(runs) == 2 and len({run.name for run in runs}) == 1
