"""A budget of minutes: the run is that of the steps that fit, and it ends when the time is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from realmctl import log
from realmctl.pipeline.trial import Trial
from realmctl.training import budget
from realmctl.training import pretrain as module
from realmctl.training.budget import within_minutes
from realmctl.training.evaluation import on_cloze
from realmctl.training.evaluation.on_cloze import ClozeQueries
from realmctl.training.monitoring import candidate_watch
from realmctl.training.realm import RealmObjective
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain, Stopped, metrics_of, pretrain, stop_at

ICT = {"batch_size": 8, "lr": 1e-2, "warmup": 1, "precision": "fp32", "checkpoint_every": 2}
CLOZE = {"cloze_recall": 12, "cloze_every": 2}


class Out:
    """What the number of steps is kept in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scratch(self, name: str) -> Path:
        self.folder.mkdir(exist_ok=True)
        return self.folder


def ict(chain: Chain, **values: object) -> IctInit:
    return IctInit(blocks=chain.blocks, retriever=chain.retriever, **{**ICT, **values})


def a_step_takes(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The steps are timed, and this is what comes of it."""
    plain = budget._seconds
    monkeypatch.setattr(budget, "_seconds", lambda *given: plain(*given) * 0 + seconds)


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, 57),  # .95 of a minute
        ({"steps": 9}, 9),
        ({"cloze_recall": 12}, 57 - 2 - 6 * 2),  # the timing of the measurement, and six more
        ({"cloze_recall": 12, "cloze_every": 4}, int((57 - 2 - 2 * 2) / 1.5)),
        ({"minutes": 1e-4}, 1),
    ],
)
def test_the_steps_that_fit_leave_time_for_the_measurements(chain: Chain, tmp_path, monkeypatch, settings, steps):
    """A step takes a second, and a measurement two."""
    clock = [0.0]
    monkeypatch.setattr(budget, "_seconds", lambda *given: 1.0)
    monkeypatch.setattr(budget.time, "monotonic", lambda: clock[0])

    def measure() -> None:
        clock[0] += 2

    stage = ict(chain, **{"minutes": 1.0, **settings})
    found = within_minutes(stage, Out(tmp_path), "ict-init", object, measure if stage.cloze_recall else None)
    assert found.steps == steps
    assert -(-found.steps // found.measured_every) + 1 <= max(
        budget.MEASUREMENTS, 2 + found.steps / found.measured_every
    )


def test_the_refreshes_of_pretraining_take_their_part_of_the_time(chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "_seconds", lambda *given: 1.0)
    monkeypatch.setattr(module, "try_to_embed", lambda *given: Trial(4.0))
    started = module.Retriever.load(chain.retriever.path)

    def steps(**settings: object) -> int:
        stage = pretrain(chain, steps=9999, minutes=100.0, refresh_every=2, **settings)
        return module._within_minutes(stage, started, Out(tmp_path / str(settings)), RealmObjective).steps

    assert steps() == pytest.approx(5700 / (1 + 4 / 2), abs=3)
    assert steps(refresh="background") == steps(refresh="lockstep") == steps()  # on the same CPU
    for elsewhere in ({"refresh": "never"}, {"refresh": "background", "refresh_device": "elsewhere"}):
        assert steps(**elsewhere) == pytest.approx(5700, abs=3)


def test_minutes_give_the_run_of_the_steps_that_fit(chain: Chain, tmp_path, monkeypatch):
    """Equal files to those of --steps with their number, also when the run was stopped and its timing would now differ."""
    a_step_takes(monkeypatch, 5700 / 5.5)
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            ict(chain, minutes=100.0, **CLOZE).make(tmp_path / "timed")
    a_step_takes(monkeypatch, 1.0)
    timed = ict(chain, minutes=100.0, **CLOZE).make(tmp_path / "timed")
    assert timed.metrics["steps"] == 5
    counted = ict(chain, steps=5, **CLOZE).make(tmp_path / "counted")
    assert timed.content == counted.content


def test_the_start_is_measured_once_and_shows_its_progress(chain: Chain, tmp_path, monkeypatch):
    ranks, progress, measured, shown = ClozeQueries.ranks, on_cloze.progress, [], []

    def counted(*given):
        measured.append(given)
        return ranks(*given)

    def seen(*given):
        shown.append(given)
        return progress(*given)

    monkeypatch.setattr(ClozeQueries, "ranks", counted)
    monkeypatch.setattr(on_cloze, "progress", seen)
    ict(chain, steps=2, **CLOZE).make(tmp_path / "counted")
    plain = len(measured)
    a_step_takes(monkeypatch, 1.0)
    made = ict(chain, **{**CLOZE, "steps": 2, "minutes": 100.0}).make(tmp_path / "timed")
    assert made.metrics["steps"] == 2 and len(measured) == 2 * plain
    assert [(what, unit) for _, what, unit in shown] == [("ict-init, measuring", "blocks")]


def test_timed_steps_are_shown_one_by_one(chain: Chain, tmp_path, monkeypatch, capfd):
    """A line for each, as where a step takes half a minute."""
    monkeypatch.setattr(log, "SECONDS_BETWEEN_LINES", 0.0)
    ict(chain, steps=2, minutes=100.0).make(tmp_path / "timed")
    assert "ict-init, timing: 2 steps" in capfd.readouterr().err


def test_minutes_of_pretraining_leave_no_trace_of_the_timing(chain: Chain, tmp_path, monkeypatch):
    """Equal files: weights, index, and the metrics of the watch on candidates, which the timed steps would have filled."""
    monkeypatch.setattr(candidate_watch, "HUB_QUERIES", 8)
    monkeypatch.setattr(module, "try_to_embed", lambda *given: Trial(0.0))
    a_step_takes(monkeypatch, 5700 / 4.5)
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            pretrain(chain, steps=100, minutes=100.0).make(tmp_path / "timed")
    a_step_takes(monkeypatch, 1.0)
    timed = pretrain(chain, steps=100, minutes=100.0).make(tmp_path / "timed")
    counted = pretrain(chain, steps=4).make(tmp_path / "counted")
    assert timed.metrics["steps"] == 4 and timed.metrics["refreshes"] == counted.metrics["refreshes"] == 1
    assert timed.content == counted.content
    assert sum("hub_share" in line for line in metrics_of(timed)) == 3  # from the second step on


@pytest.mark.parametrize("stage", [ict, pretrain])
def test_when_the_time_is_over_the_run_ends(chain: Chain, tmp_path, monkeypatch, stage):
    a_step_takes(monkeypatch, 1e-9)
    made = stage(chain, steps=1000, minutes=1e-6).make(tmp_path / "r")
    assert made.metrics["steps"] == 1  # the first step is longer than 60 microseconds
    if made.kind == "model":
        assert made.part("retriever").metrics["step"] == 1
