"""The loop on an objective that can be computed by hand."""

from __future__ import annotations

from contextlib import suppress

import pytest
import torch

from realmctl.errors import ConfigError, NotFiniteError, QualityError, ResourceError
from realmctl.models.optimizer import bert_lr
from realmctl.training.loop import seed_of, train, trained_weights
from realmctl.training.objective import Observer, StepSums
from realmctl.training.settings.base import TrainSettings
from tests.fixtures.parabola import Parabola, lines, writer


def test_what_is_logged(tmp_path):
    objective = Parabola()
    metrics = train(objective, TrainSettings(steps=10, lr=0.1, warmup=5), writer(tmp_path), "toy")
    logged = lines(tmp_path)
    assert [line["step"] for line in logged] == list(range(1, 11))
    assert logged[0]["loss"] == pytest.approx(9) and logged[0]["grad_norm"] == pytest.approx(6)
    assert [line["lr"] for line in logged] == pytest.approx([0, 0.02, 0.04, 0.06, 0.08, 0.05, 0.04, 0.03, 0.02, 0.01])
    assert all(line["hits"] == 0.5 for line in logged)
    assert metrics["steps"] == 10 and metrics["hits"] == 0.5
    assert metrics["loss"] == pytest.approx(sum(line["loss"] for line in logged) / 10, abs=1e-6)
    assert not any("seconds" in name for line in logged for name in line)  # times would make equal runs differ
    assert metrics["seconds_per_step"] >= 0


def test_a_run_is_the_trace_of_berts_optimizer_and_schedule_by_hand(tmp_path):
    """No bias correction, clipping to norm 1, decay beside the gradient, and a linear decay that warm-up does not shift."""
    objective, (w, m, v) = Parabola(), (0.0, 0.0, 0.0)
    for rate in [0, 0.05, 0.1 * 4 / 6, 0.1 * 3 / 6, 0.1 * 2 / 6, 0.1 / 6]:
        gradient = 2 * (w - 3)
        gradient *= min(1.0, 1 / abs(gradient))
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        w -= rate * (m / (v**0.5 + 1e-6) + 0.01 * w)
    train(objective, TrainSettings(steps=6, lr=0.1, warmup=2), writer(tmp_path), "toy")
    assert objective.weight.weight.item() == pytest.approx(w, rel=1e-5)
    assert w > 0.5  # a corrected Adam would have moved by the rate a step, 0.22 in all


def test_a_step_with_nothing_to_learn_leaves_weights_and_moments_alone(tmp_path):
    whole = Parabola()
    train(whole, TrainSettings(steps=1, lr=0.1, warmup=0), writer(tmp_path / "one"), "toy")
    rest = Parabola(silent=(1, 2))
    train(rest, TrainSettings(steps=3, lr=0.1, warmup=0), writer(tmp_path / "three"), "toy")
    assert torch.equal(whole.weight.weight, rest.weight.weight)
    assert [line["grad_norm"] > 0 for line in lines(tmp_path / "three")] == [True, False, False]


def test_every_step_has_a_seed_of_its_own(tmp_path):
    one, two = Parabola(), Parabola()
    train(one, TrainSettings(steps=4, lr=0.1, warmup=0), writer(tmp_path / "one"), "toy")
    torch.rand(5)
    train(two, TrainSettings(steps=4, lr=0.1, warmup=0), writer(tmp_path / "two"), "toy")
    assert one.noise == two.noise and len(set(one.noise)) == 4
    assert seed_of(0, 1) != seed_of(1, 0)


def test_divergence_and_lack_of_memory_are_told_in_one_paragraph(tmp_path):
    with pytest.raises(QualityError, match=r"after 0 of 4 .*--then-lr 0=0\.01 "):
        train(Parabola(broken="diverge"), TrainSettings(steps=4, lr=0.1, warmup=0), writer(tmp_path / "one"), "toy")
    broken = Parabola(broken=torch.OutOfMemoryError("CUDA out of memory. Tried to\nallocate"))
    with pytest.raises(ResourceError, match=r"step 3 of toy.*Tried to.*micro-batch") as error:
        train(broken, TrainSettings(steps=4, lr=0.1, warmup=0), writer(tmp_path / "two"), "toy")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "values",
    [
        {"steps": 0},
        {"lr": 0.0},
        {"lr": float("nan")},
        {"warmup": -1},
        {"seed": -1},
        {"checkpoint_every": 0},
    ],
)
def test_settings_that_cannot_work(values):
    with pytest.raises(ConfigError):
        TrainSettings(**{"steps": 1, "lr": 1.0, **values})


class Stopper(Observer):
    """Ends the run after as many steps as it has seen metrics of, and keeps what it saw."""

    name = "stopper"

    def __init__(self, most):
        self.most, self.seen = most, 0

    @property
    def finished(self):
        return self.seen >= self.most

    def after_step(self, line):
        self.seen += 1
        return {"seen": self.seen}

    def state(self):
        return self.seen

    def restore(self, state):
        self.seen = state


def stopped_run(folder, objective, most=66, **values):
    settings = TrainSettings(steps=100, lr=0.1, warmup=0, checkpoint_every=10, **values)
    return train(objective, settings, writer(folder), "toy", [Stopper(most)])


def test_an_observer_ends_a_run_and_its_metrics_are_logged(tmp_path, capsys):
    objective = Parabola()
    assert stopped_run(tmp_path, objective)["steps"] == 66
    assert [line["seen"] for line in lines(tmp_path)] == [*range(1, 67)]
    assert "stopped after step 66 of 100" in capsys.readouterr().err
    assert lines(tmp_path)[-1]["lr"] == pytest.approx(0.1 * (1 - 65 / 100))  # the schedule follows --steps


@pytest.mark.parametrize("step", [23, 65, 66])
def test_a_run_that_an_observer_ends_is_the_same_when_it_was_stopped(tmp_path, step):
    whole = Parabola()
    stopped_run(tmp_path / "whole", whole)
    with suppress(ZeroDivisionError):
        stopped_run(tmp_path / "halves", StopsAt(step))
    again = Parabola()
    stopped_run(tmp_path / "halves", again)
    assert torch.equal(again.weight.weight, whole.weight.weight)
    assert len(again.noise) == 66 - step // 10 * 10 if step < 66 else not again.noise
    assert lines(tmp_path / "halves") == lines(tmp_path / "whole")


class StopsAt(Parabola):
    """It fails in a step."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def draw(self, step):
        if step == self.step:
            raise ZeroDivisionError
        return super().draw(step)


def test_two_checkpoints_are_kept(tmp_path):
    train(Parabola(), TrainSettings(steps=7, lr=0.1, warmup=0, checkpoint_every=2), writer(tmp_path), "toy")
    names = sorted(path.name for path in (tmp_path / ".scratch/checkpoints").iterdir())
    assert names == ["step-00000006", "step-00000007"]
    held = {path.name for path in (tmp_path / ".scratch/checkpoints/step-00000007").iterdir()}
    assert held == {
        "modules.safetensors",
        "optimizer.safetensors",
        "metrics.jsonl",
        "state.json",
    }  # no index, whose size they would have


def test_a_torn_line_of_the_log_is_written_again(tmp_path):
    train(Parabola(), TrainSettings(steps=4, lr=0.1, warmup=0, checkpoint_every=4), writer(tmp_path), "toy")
    with (tmp_path / "metrics.jsonl").open("a") as log:
        log.write('{"step": 5, "lo')
    train(Parabola(), TrainSettings(steps=6, lr=0.1, warmup=0, checkpoint_every=4), writer(tmp_path), "toy")
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 4, 5, 6]


def test_a_refresher_given_up_costs_no_step(tmp_path):
    class Abandoned(Observer):
        def before_step(self, step):
            if step == 3:
                raise ResourceError("the refresher failed")
            return {}

    out = writer(tmp_path)
    with pytest.raises(ResourceError, match="refresher"):
        train(Parabola(), TrainSettings(steps=5, lr=0.1, warmup=0), out, "toy", [Abandoned()])
    again = Parabola()
    train(again, TrainSettings(steps=5, lr=0.1, warmup=0), out, "toy")
    assert len(again.noise) == 2  # steps 4 and 5 alone
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 4, 5]


def diverging(at):
    """A parabola whose losses grow a hundredfold a step from step `at` on, and are infinite ten steps later."""

    class Diverging(Parabola):
        def loss(self, part):
            loss, sums = super().loss(part)
            return loss * (1.0 if part[0] < at else 100.0 ** min(part[0] - at + 1, 400)), sums

    return Diverging()


def test_a_run_that_diverges_keeps_a_checkpoint_from_before_and_says_how_to_go_on(tmp_path, capsys):
    out = writer(tmp_path)
    settings = TrainSettings(steps=60, lr=0.01, warmup=0, checkpoint_every=5)
    with pytest.raises(QualityError, match="after") as error:
        train(diverging(at=12), settings, out, "toy")
    assert "--then-lr 10=0.001 " in str(error.value) and "\n" not in str(error.value)
    kept = sorted(path.name for path in (tmp_path / ".scratch" / "checkpoints").iterdir())
    assert kept == ["step-00000010", "step-00000025", "step-00000030"]
    said = capsys.readouterr().err
    assert "(alarm loss_exploded)" in said and "lower --lr" in said


def test_weights_that_are_not_finite_after_the_last_step_are_not_published(tmp_path):
    class Overflowing(Parabola):
        def draw(self, step):
            if step == 3:
                self.weight.weight.data.fill_(torch.inf)
            return super().draw(step)

        def loss(self, part):
            loss, sums = super().loss(part)
            return (None if part[0] >= 3 else loss), sums

    with pytest.raises(QualityError, match=r"after 4 of 4.*weight\.weight"):
        train(Overflowing(), TrainSettings(steps=4, lr=0.1, warmup=0), writer(tmp_path), "toy")


def test_what_trained_weights_give_is_not_finite(tmp_path):
    """The last checkpoint holds these weights, so the run goes on from the one before it."""
    settings = TrainSettings(steps=6, lr=0.01, warmup=0, checkpoint_every=2)
    train(Parabola(), settings, writer(tmp_path), "toy")
    told = pytest.raises(QualityError, match=r"toy diverged after 6 of 6 .*--then-lr 4=0\.001 ")
    with told, trained_weights(settings, writer(tmp_path), "toy"):
        raise NotFiniteError("the first vector is not finite.")


class MeasuredAtEnd(Observer):
    def __init__(self, broken_at_end=None):
        self.broken_at_end = broken_at_end

    def at_end(self, step):
        if self.broken_at_end:
            raise self.broken_at_end
        return {"quality": step / 2}


def test_a_measure_at_the_end_that_is_not_finite_is_a_run_that_diverged(tmp_path):
    watch = MeasuredAtEnd(NotFiniteError("the first score is not finite."))
    settings = TrainSettings(steps=6, lr=0.01, warmup=0, checkpoint_every=2)
    with pytest.raises(QualityError, match=r"toy diverged after 6 of 6 .*first score.*--then-lr 4=0\.001 "):
        train(Parabola(), settings, writer(tmp_path), "toy", [watch])


def test_a_run_that_breaks_in_its_last_measure_has_it_once(tmp_path):
    watch = MeasuredAtEnd(ZeroDivisionError())
    settings = TrainSettings(steps=6, lr=0.01, warmup=0, checkpoint_every=4)
    with pytest.raises(ZeroDivisionError):
        train(Parabola(), settings, writer(tmp_path), "toy", [watch])
    for _ in range(2):
        metrics = train(Parabola(), settings, writer(tmp_path), "toy", [MeasuredAtEnd()])
        assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 4, 5, 6, 6]
        assert lines(tmp_path)[-1] == {"step": 6, "quality": 3.0} and "quality" not in metrics


def test_another_rate_counts_from_its_step_on(tmp_path):
    settings = TrainSettings(steps=4, lr=0.4, warmup=0, then_lr=("2=0.1", "3=0.04"))
    train(Parabola(), settings, writer(tmp_path), "toy")
    assert [line["lr"] for line in lines(tmp_path)] == pytest.approx([0.4, 0.3, 0.05, 0.01])


@pytest.mark.parametrize("value", ["5", "x=1", "-1=1", "5=0", "5=nan", "5=1e300", "1.5=1", ""])
def test_another_rate_that_is_none(value):
    with pytest.raises(ConfigError, match="then-lr"):
        TrainSettings(then_lr=(value,))


@pytest.mark.parametrize(
    ("steps", "warmup"), [(1, None), (8, None), (9, 0), (30, None), (30, 29), (10, 100), (300, 40)]
)
def test_the_peak_rate_is_the_highest_that_a_step_has(steps, warmup):
    settings = TrainSettings(steps=steps, lr=0.5, warmup=warmup)
    rates = [bert_lr(step, steps, settings.warmup_steps, settings.lr) for step in range(steps)]
    assert settings.peak_lr == pytest.approx(max(rates))
    assert warmup is not None or settings.peak_lr >= 0.5 * 0.5


def test_a_short_run_is_not_all_warm_up():
    assert [TrainSettings(steps=steps).warmup_steps for steps in (1, 8, 10, 150, 1000, 5000, 10**6)] == [
        0, 0, 1, 15, 100, 500, 10_000,
    ]  # fmt: skip


def test_sums_are_those_of_floats_added_in_order():
    sums = StepSums()
    assert not sums.learned and sums.read() == (None, {})
    values = [torch.tensor(0.1), torch.tensor(0.2), torch.tensor(0.3)]
    for value in values:
        sums.add(value, {"a": (value, 2), "b": (torch.tensor(3), torch.tensor(4))})
    sums.add(None, {"a": (1.5, 1)})
    total = float(values[0]) + float(values[1]) + float(values[2])
    assert sums.learned and sums.read() == (total, {"a": (total + 1.5, 7.0), "b": (9.0, 12.0)})


@pytest.mark.parametrize(
    ("torn", "says"),
    [
        (lambda loss: loss.repeat(3), r"a tensor of shape \[3\] with a gradient"),
        (lambda loss: loss.detach(), r"a tensor of shape \[\] without a gradient"),
        (lambda loss: loss.item(), "float without a gradient"),
    ],
)
def test_a_loss_that_no_gradient_can_be_taken_of_is_told(tmp_path, torn, says):
    class Torn(Parabola):
        def loss(self, part):
            loss, sums = super().loss(part)
            return torn(loss), sums

    with pytest.raises(ConfigError, match=rf"the loss of {__name__}\.\S*Torn is {says}, and training needs a scalar"):
        train(Torn(), TrainSettings(steps=1, lr=0.1), writer(tmp_path / "v1"), "toy")
