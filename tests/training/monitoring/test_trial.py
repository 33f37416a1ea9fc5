"""Dry runs of training stages: the estimates are of the stage's own settings, and nothing is left behind."""

from __future__ import annotations

import time

import pytest

from realmctl.pipeline import planning
from realmctl.training.loop import train
from realmctl.training.monitoring import trial
from realmctl.training.settings.base import TrainSettings
from stages.mlm_init import MlmInit
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
    found = trial.trial_of(lambda out: train(sleeper, settings, out, "toy"), origin)
    return found, sleeper.taken


def test_the_time_of_the_run_is_that_of_its_own_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "ENOUGH_SECONDS", 0.1)
    found, taken = estimated(tmp_path, 0.02, steps=1000)
    assert 3 < taken <= 7 and found["seconds_per_step"] >= 0.02
    whole = found["seconds_before_first_step"] + 1000 * found["seconds_per_step"]
    assert found["seconds"] == pytest.approx(whole) and found["disk_bytes"] == 4 * 3 * 4


def test_fast_steps_end_the_trial_by_their_number_and_a_short_run_by_its_last(tmp_path):
    assert estimated(tmp_path, 0.0, steps=1000)[1] == trial.MEASURED_STEPS.stop + 1
    found, taken = estimated(tmp_path, 0.0, steps=1)
    assert taken == 1 and found["seconds_per_step"] > 0


def test_a_plan_measures_only_what_is_not_made(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "ENOUGH_SECONDS", 0.0)
    out, stage = tmp_path / "model", pretrain(chain, steps=40, refresh_every=20)
    planned = planning.plan(stage, out, measure=True)
    names = {"seconds", "seconds_before_first_step", "seconds_per_step", "memory_bytes", "disk_bytes"}
    assert names <= set(planned["estimate"]) and not planned["reuses"] and not out.exists()
    assert planned["estimate"]["memory_bytes"] > 50e6  # Python and PyTorch alone
    assert "estimate seconds " in planning.plan_text(planned)
    assert planning.plan(stage, out)["estimate"] == {"peak_lr": stage.peak_lr}
    assert set(planning.plan(finetune(chain), out, measure=True)["estimate"]) == {*names, "peak_lr"}


def test_other_settings_say_nothing_about_the_time(chain, tmp_path):
    settings = {"blocks": chain.blocks, "bert": "scratch:L1-H16", "batch_size": 2, "length": 24}
    made = MlmInit(steps=1, **settings).make(tmp_path / "encoder")
    assert planning.plan(MlmInit(steps=2, **settings), tmp_path / "encoder")["estimate"] == {"peak_lr": 1e-4}
    equal = planning.plan(MlmInit(steps=1, **settings), tmp_path / "encoder")
    assert equal["estimate"] == {"peak_lr": 1e-4, "seconds_of_last_version": made.manifest.seconds}
