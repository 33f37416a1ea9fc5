"""Trials: what a part of the work tells of all of it, for the stage's own settings, and nothing is left behind."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from realmctl.log import progress
from realmctl.pipeline import Stage, planning, trying
from realmctl.pipeline.trial import Trial
from realmctl.pipeline.trying import tried
from realmctl.training.loop import train
from realmctl.training.realm import RealmObjective
from realmctl.training.settings import base
from realmctl.training.settings.base import TrainSettings
from stages.embed import Embed
from stages.mlm_init import MlmInit
from stages.pretrain import Pretrain
from tests.fixtures.chain import finetune, pretrain
from tests.fixtures.parabola import Parabola, writer


class Sleeper(Parabola):
    """An objective whose steps take a known time."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.taken = seconds, 0

    def draw(self, step):
        self.taken += 1
        time.sleep(self.seconds if step else 10 * self.seconds)
        return super().draw(step)


def estimated(tmp_path, seconds, steps):
    sleeper = Sleeper(seconds)
    settings = TrainSettings(steps=steps, lr=0.1, warmup=0)
    origin = writer(tmp_path / "x").origin
    found = tried(lambda out: train(sleeper, settings, out, "toy"), origin, "steps")
    return found, sleeper.taken


class Clock:
    """A clock that work sets forward. The trial reads it."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(trying.time, "monotonic", lambda: self.now)

    def work(self, what, units, each, at_once=1):
        """Show progress of `units`, of which each takes so many seconds, the first ten times as many."""
        with progress(units, what, what) as bar:
            for done in range(0, units, at_once):
                self.now += each * at_once * (1 if done else 10)
                bar.advance(at_once)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_work_that_shows_progress_is_left_when_it_tells_how_long_it_takes(tmp_path, clock):
    """2 s of loading, the first units that are slower, and 40 units of half a second."""

    def run(out):
        clock.now += 2.0
        clock.work("blocks", 40, 0.5)
        raise AssertionError("the trial goes on to the end")

    found = tried(run, writer(tmp_path / "x").origin)
    assert (found.unit, found.count, found.each) == ("blocks", 40, 0.5)
    assert found.seconds == pytest.approx(2 + 9 * 0.5 + 40 * 0.5) and clock.now < 12


def test_the_longest_piece_of_work_that_was_done_to_its_end_is_what_grows(tmp_path, clock):
    def run(out):
        clock.work("questions", 10, 0.01)
        clock.work("blocks", 20, 0.05)
        clock.now += 1.0

    found = tried(run, writer(tmp_path / "x").origin)
    taken = clock.now
    assert found.unit == "blocks" and found.seconds == pytest.approx(taken)
    assert found.times(3).seconds == pytest.approx(taken + 2 * 20 * 0.05)


def test_other_progress_than_that_which_counts_is_seen_through(tmp_path, clock):
    def run(out):
        clock.work("sentences", 1000, 0.1)
        clock.work("steps", 50, 1.0)

    found = tried(run, writer(tmp_path / "x").origin, counted="steps")
    assert (found.unit, found.count, found.each) == ("steps", 50, 1.0) and found.before == pytest.approx(100.9)


def test_work_without_progress_is_done_to_its_end(tmp_path, clock):
    def run(out):
        clock.now += 7.0
        out.file("a").write_bytes(b"x" * 1000)

    found = tried(run, writer(tmp_path / "x").origin)
    assert found.seconds == 7.0 and found.disk_bytes == 1000 and found.times(5).seconds == 7.0


def test_the_files_of_a_part_tell_of_all_of_them(tmp_path, clock):
    def run(out):
        out.file("a").write_bytes(b"x" * 700)
        clock.work("blocks", 100, 1.0, at_once=2)

    found = tried(run, writer(tmp_path / "x").origin)
    assert found.disk_bytes == pytest.approx(700 * 100 / 6)  # three marks of two blocks


def test_a_dry_run_has_the_numbers_that_are_known():
    assert Trial(2.0).estimate() == {"seconds": 2.0}
    steps = Trial(2.0, 0.5, 10, "steps", memory_bytes=3.0).estimate()
    assert steps == {"seconds": 7.0, "seconds_before_first_step": 2.0, "seconds_per_step": 0.5, "memory_bytes": 3.0}


def test_the_time_of_the_run_is_that_of_its_own_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(trying, "ENOUGH_SECONDS", 0.1)
    found, taken = estimated(tmp_path, 0.02, steps=1000)
    assert 3 < taken <= 7 and found.each >= 0.02
    assert found.seconds == found.before + 1000 * found.each and found.disk_bytes == 4 * 3 * 4


def test_fast_steps_end_the_trial_by_their_number_and_a_short_run_by_its_last(tmp_path):
    assert estimated(tmp_path, 0.0, steps=1000)[1] == trying.MEASURED_STEPS.stop + 1
    found, taken = estimated(tmp_path, 0.0, steps=1)
    assert taken == 1 and found.each > 0


def test_a_plan_measures_only_what_is_not_made(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(trying, "ENOUGH_SECONDS", 0.0)
    out, stage = tmp_path / "model", pretrain(chain, steps=40, refresh_every=20)
    planned = planning.plan(stage, out, measure=True)
    names = {"seconds", "seconds_before_first_step", "seconds_per_step", "memory_bytes", "disk_bytes"}
    assert names <= set(planned["estimate"]) and not planned["reuses"] and not out.exists()
    assert planned["estimate"]["memory_bytes"] > 50e6  # Python and PyTorch alone
    assert "estimate seconds " in planning.stage_plan_text(planned)
    assert planning.plan(stage, out)["estimate"] == {"peak_lr": stage.peak_lr}
    assert set(planning.plan(finetune(chain), out, measure=True)["estimate"]) == {*names, "peak_lr"}


def test_other_settings_say_nothing_about_the_time(chain, tmp_path):
    settings = {"blocks": chain.blocks, "bert": "scratch:L1-H16", "batch_size": 2, "length": 24}
    made = MlmInit(steps=1, **settings).make(tmp_path / "encoder")
    assert planning.plan(MlmInit(steps=2, **settings), tmp_path / "encoder")["estimate"] == {"peak_lr": 1e-4}
    equal = planning.plan(MlmInit(steps=1, **settings), tmp_path / "encoder")
    assert equal["estimate"] == {"peak_lr": 1e-4, "seconds_of_last_version": made.manifest.seconds}


def _timed(stage, each):
    return Trial(1.0, each * stage.batch_size, float(stage.steps), "steps", memory_bytes=100.0)


@pytest.mark.parametrize(
    ("each", "micro_batch", "tried_with", "memory"),
    [(1.0, 0, [2], 0.0), (0.01, 0, [2, 50], 0.0), (1e-6, 0, [2, 512], 100.0), (1e-6, 4, [2, 4], 100.0)],
)
def test_a_trial_takes_as_few_examples_as_tell(chain, monkeypatch, each, micro_batch, tried_with, memory):
    seen = []
    monkeypatch.setattr(Stage, "trial", lambda stage: seen.append(stage.batch_size) or _timed(stage, each))
    stage = pretrain(chain, steps=10, batch_size=512, micro_batch=micro_batch, device="cpu")
    found = stage.trial()
    assert seen == tried_with and found.memory_bytes == memory
    assert found.seconds == pytest.approx(1.0 + 10 * 512 * each)


def test_a_trial_of_a_large_batch_computes_few_examples_and_prints_nothing(chain, monkeypatch, capsys):
    drawn, draw = [], RealmObjective.draw
    monkeypatch.setattr(RealmObjective, "draw", lambda it, step: drawn.append(it.settings.batch_size) or draw(it, step))
    monkeypatch.setattr(base, "LONG_STEP", 0.0)
    found = pretrain(chain, steps=200_000, batch_size=512).trial()
    assert set(drawn) == {2} and len(drawn) >= 3
    assert found.count == 200_000 and found.each > 0 and capsys.readouterr().err == ""


DAYS = Trial(60.0, 10.0, 200_000.0, "steps")


@pytest.fixture
def long(chain, monkeypatch):
    """The words of a pre-training of which a trial says that it takes 23 days."""
    tried_stages = []
    monkeypatch.setattr(Pretrain, "trial", lambda stage: tried_stages.append(stage) or DAYS)
    monkeypatch.setattr(Pretrain, "make", lambda stage, out: chain.retriever)
    parts = [f"--{name}={getattr(chain, name).path}" for name in ("blocks", "spans", "retriever", "index", "encoder")]
    return ["pretrain", *parts], tried_stages


@pytest.mark.parametrize(("terminal", "yes", "code"), [(True, False, 2), (True, True, 0), (False, False, 0)])
def test_more_than_a_day_is_told_and_asked_for_on_a_terminal(long, realmctl, monkeypatch, terminal, yes, code):
    words, _ = long
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: terminal))
    found, _, err = realmctl(*words, *(["--yes"] if yes else []))
    told = " ".join(err.split())
    assert found == code and "pretrain: this takes about 23 d 3 h on this machine." in told
    assert (
        "It has 200,000 steps of 512 examples, as the paper. --batch-size 16 --steps 11520 takes about an hour." in told
    )
    assert ("Start it with --yes" in told) == (code == 2) and ("It starts now." in told) == (code == 0)


def test_a_short_run_and_one_that_exists_are_not_tried(long, realmctl, chain, tmp_path):
    words, tried_stages = long
    assert realmctl(*words, "--steps", 100)[0] == 0 and tried_stages == []
    assert not Embed(blocks=chain.blocks, retriever=chain.retriever).may_take_days
