"""The watch on loss and gradient, on series written by hand, and on a real run that is made to collapse."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from realmctl.errors import ConfigError, QualityError
from realmctl.training.monitoring.loss_watch import LossWatch
from realmctl.training.settings.base import TrainSettings
from stages.mlm_init import MlmInit
from tests.faults.counting import count

STEPS, CHANCE = 400, math.log(64)


def raised(losses, gradients=None, *, chance=CHANCE, cut=None):
    """{alarm: step of its first episode}. With `cut` the run is continued from a checkpoint at that step."""
    watch = LossWatch(STEPS, chance, (), "toy")
    found = {}
    for step, (loss, gradient) in enumerate(zip(losses, gradients or [1.0] * len(losses), strict=True), 1):
        if step == cut:
            state = json.loads(json.dumps(watch.state()))
            watch = LossWatch(STEPS, chance, (), "toy")
            watch.restore(state)
        for name in watch.observe({"step": step, "loss": loss, "grad_norm": gradient}):
            found.setdefault(name, step)
    return found


def noisy(mean, count, noise=0.2, seed=0):
    return (mean + noise * np.random.default_rng(seed).standard_normal(count)).tolist()


@pytest.mark.parametrize("cut", [None, 60, 130])
def test_each_failure_raises_its_alarm(cut):
    assert raised(np.linspace(6, 0.5, STEPS).tolist(), cut=cut) == {}
    assert raised(noisy(6, 50) + (6 * 1.3 ** np.arange(50.0)).tolist(), cut=cut)["loss_exploded"] in range(55, 75)
    collapsed = noisy(9, 50) + noisy(CHANCE, 350, 0.02)
    assert raised(collapsed, cut=cut).keys() == {"loss_at_chance"}
    dead = [1.0] * 50 + [3e-6] * 350
    assert raised(noisy(9, 50) + [CHANCE] * 350, dead, cut=cut).keys() == {
        "loss_at_chance",
        "dead_gradient",
        "constant_loss",
    }
    assert raised([0.0] * STEPS, [0.0] * STEPS, cut=cut).keys() == {"constant_loss"}
    count("losses that failed, with their alarm", 4)


def test_what_is_no_failure():
    perfect = np.linspace(6, 0, 200).tolist() + (1e-4 * np.random.default_rng(0).random(200)).tolist()
    assert raised(perfect, [1.0] * 200 + [1e-6] * 200) == {}  # nothing is left to learn
    assert raised(noisy(0.5, 100) + noisy(4, 300)) == {}  # harder examples come later, and guessing would cost as much
    assert raised(noisy(CHANCE, STEPS, 0.02), chance=0) == {}
    assert raised(noisy(CHANCE, 90, 0.02) + noisy(2, 310)) == {}  # the first quarter does not count


def test_a_start_without_loss_or_gradient_and_a_chance_that_is_not_known():
    healthy = noisy(4, 380)
    assert raised([0.0] * 20 + healthy, [0.0] * 20 + [1.0] * 380, chance=0) == {}
    assert raised([0.0] * 20 + [4.0] * 20 + [40.0] * 20, chance=0).keys() == {"loss_exploded"}


@pytest.mark.parametrize(
    ("name", "near", "beyond", "still", "over"),
    [
        ("loss_exploded", (2.9, 1), (3.1, 1), (2.1, 1), (1.9, 1)),
        ("loss_at_chance", (1.011, 1), (1.009, 1), (1.029, 1), (1.031, 1)),
        ("dead_gradient", (1, 1.1e-4), (1, 0.9e-4), (1, 0.9e-3), (1, 1.1e-3)),
    ],
)
def test_an_alarm_begins_and_ends_at_the_thresholds_of_the_page(name, near, beyond, still, over):
    """Losses are multiples of the first, which is that of chance, and gradients of the first."""
    for ends, between, episodes in ((near, near, 0), (beyond, still, 1), (beyond, over, 2)):
        watch = LossWatch(700, CHANCE, (), "toy")
        series = [(1, 1), *[over] * 250, *[ends] * 150, *[between] * 150, *[ends] * 150]
        for step, (loss, gradient) in enumerate(series):
            watch.observe({"step": step, "loss": loss * CHANCE, "grad_norm": gradient})
        assert watch.alarms.counts[name] == episodes


def test_a_checkpoint_is_sound_until_the_loss_leaves_its_range():
    watch = LossWatch(STEPS, 1.0, (), "toy")
    assert watch.in_range
    sound = []
    for step, loss in enumerate([4.0] * 20 + [40.0] * 20 + [1.0] * 20, 1):
        watch.observe({"step": step, "loss": loss, "grad_norm": 1.0})
        sound.append(watch.in_range)
        again = LossWatch(STEPS, 1.0, (), "toy")
        again.restore(json.loads(json.dumps(watch.state())))
        assert again.in_range is watch.in_range
    assert sound[:20] == [True] * 20 and not any(sound[21:40]) and all(sound[50:])


def test_an_encoder_that_nothing_is_hidden_from_and_one_whose_rate_is_too_high(chain, tmp_path, capsys):
    values = {"blocks": chain.blocks, "bert": "scratch:L1-H16", "batch_size": 2, "length": 24, "steps": 12}
    still = MlmInit(**values, mask_rate=1e-9).make(tmp_path / "still")
    assert still.metrics["alarms"]["constant_loss"] == 1
    with pytest.raises(QualityError, match="loss_exploded"):
        MlmInit(**values, lr=3.0, warmup=0, stop_on=("loss_exploded",)).make(tmp_path / "wild")
    assert "lower --lr" in capsys.readouterr().err


def test_alarms_that_a_stage_does_not_have():
    with pytest.raises(ConfigError, match="no_utility"):
        TrainSettings(stop_on=("loss_exploded", "no_utility"))
