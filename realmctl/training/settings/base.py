"""What all trainings have: steps, rates, batches, precision, checkpoints and alarms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Self, get_args

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.errors import ConfigError
from realmctl.execution import processes
from realmctl.pipeline import Exchange, Precision, Settings, Stage, check_device, help_texts, runtime, setting
from realmctl.pipeline.presets import is_of_the_paper
from realmctl.pipeline.settings import extended
from realmctl.pipeline.trial import STEPS, Trial
from realmctl.pipeline.values import LARGEST_INT
from realmctl.training.monitoring.alarms import AlarmName, LossAlarm
from realmctl.training.monitoring.curves import Curves

Optimizer = Literal["bert", "adamw"]

LARGEST_BATCH = 2**17
"""Most examples of a step. Each process draws all of them, and holds the gradients of its own."""

LARGEST_RATE = 1e6
"""Largest learning rate. Steps far above it leave float32 at once."""

FEWEST_TRIED, LONG_STEP = 2, 0.5
"""On a CPU a trial begins with steps of so many examples, and takes as many more as last so many seconds."""

MANY_EXAMPLES = 100_000
"""A training of so many examples may take days, so it is tried before it starts."""


def rate(default: float | None, text: str = help_texts.LEARNING_RATE, *, advanced: bool = False) -> Any:
    """Declare a learning rate."""
    return setting(text, default=default, above=0, at_most=LARGEST_RATE, advanced=advanced)


def changes_of(then_lr: Sequence[str]) -> dict[int, float]:
    """Return {step: rate} of `STEP=RATE` entries. Raises ValueError for what is none."""
    return {int(step): float(rate) for step, rate in (each.split("=") for each in then_lr)}


def check_then_lr(flag: str, values: Sequence[str]) -> None:
    """Check the form of `STEP=RATE` entries. Raises ConfigError."""
    for value in values:
        try:
            [(step, rate)] = changes_of([value]).items()
        except ValueError:
            step, rate = -1, 0.0
        if step < 0 or not 0 < rate <= LARGEST_RATE:
            raise ConfigError(
                f"{flag} {value!r} is not STEP=RATE, such as 500=1e-5, with a rate above 0 and at most {LARGEST_RATE:g}."
            )


def check_loss_alarms(flag: str, names: Sequence[str]) -> None:
    """Check that alarms concern the loss, as those of every training do. Raises ConfigError."""
    if others := sorted(set(names) - set(get_args(LossAlarm))):
        raise ConfigError(
            f"{flag} {others[0]}: only pretrain has this alarm. Here are {', '.join(get_args(LossAlarm))}."
        )


@extended("training")
class TrainSettings(Settings):
    """What all trainings have. Rooms add options to them by subclasses of `Settings` (`realmctl.options.training`)."""

    steps: int = setting(help_texts.STEPS, default=10_000, at_least=1)
    batch_size: int = setting("Examples per step.", default=128, at_least=1, at_most=LARGEST_BATCH)
    lr: float = rate(1e-4)
    then_lr: tuple[str, ...] = setting(help_texts.THEN_LR, default=(), check=check_then_lr, advanced=True)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0, advanced=True)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="bert", advanced=True)
    seed: int = setting(help_texts.SEED, default=0, at_least=0, at_most=LARGEST_INT)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)
    micro_batch: int = runtime("Examples computed at once; 0 means the whole batch.", default=0, at_least=0)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1, advanced=True)
    stop_on: tuple[AlarmName, ...] = runtime(help_texts.STOP_ON, default=(), check=check_loss_alarms, advanced=True)

    def curves(self, what: str, out: Writer) -> Curves:
        """Return what gets the records of the version that `out` writes, for the stage `what`. Raises ConfigError and ResourceError."""
        return Curves()

    @property
    def seconds(self) -> float | None:
        """The time after which training ends; None for no limit."""
        return None

    @property
    def at_once(self) -> int:
        """Examples of a micro-batch."""
        return self.micro_batch or self.batch_size

    @property
    def warmup_steps(self) -> int:
        """Steps of linear warm-up: `warmup`, or a tenth of the steps, 10,000 at most as in BERT."""
        return min(10_000, self.steps // 10) if self.warmup is None else self.warmup

    def lr_at(self, step: int) -> float:
        """The peak learning rate that counts at a step, counted from 0: `lr`, or the last of `then_lr` that has begun."""
        begun = {start: rate for start, rate in changes_of(self.then_lr).items() if start <= step}
        return begun[max(begun)] if begun else self.lr

    @property
    def peak_lr(self) -> float:
        """The highest learning rate that a step has: warm-up that is long beside the steps never reaches `lr`."""
        steps, warmup = self.steps, self.warmup_steps
        if warmup >= steps:
            return self.lr * (steps - 1) / max(1, warmup)
        return self.lr * max((warmup - 1) / max(1, warmup), 1 - warmup / steps)

    def one_step(self) -> Self:
        """Return the same settings with one step and little else."""
        return dataclasses.replace(self, steps=1, then_lr=())

    def with_batch(self, examples: int) -> Self:
        """Return the same settings with so many examples in a step, all at once, to time steps."""
        return dataclasses.replace(self, batch_size=examples, micro_batch=0)


class TrainingStage(TrainSettings, Stage, abstract=True):
    """Base of the stages that train: they can be resumed, and torchrun may start them. A trial counts steps."""

    resumable = True
    parallel = True
    counted = STEPS

    def together(self) -> AbstractContextManager[Exchange]:
        from realmctl.training.data_parallel import together

        return together(self.device)

    def trial(self) -> Trial:
        """Time steps of few examples, and where these take no time, of as many as take a while or fill a micro-batch. A step takes as long as its
        examples.

        The memory is known only if a whole micro-batch was computed.
        """
        from realmctl.models.precision import pick_device

        part = max(min(2, self.batch_size), min(self.at_once, self.batch_size))
        examples = min(part, FEWEST_TRIED) if pick_device(self.device).type == "cpu" else part
        found = super(TrainingStage, self.with_batch(examples)).trial()
        if 0 < found.each < LONG_STEP and examples < part:
            examples = min(part, math.ceil(examples * LONG_STEP / found.each))
            found = super(TrainingStage, self.with_batch(examples)).trial()
        memory = found.memory_bytes if examples == part else 0.0
        return dataclasses.replace(found, each=found.each * self.batch_size / examples, memory_bytes=memory)

    @property
    def may_take_days(self) -> bool:
        return self.steps * self.batch_size >= MANY_EXAMPLES

    def shorter(self, trial: Trial) -> str:
        """Return how long the run is, whether that is the paper's length, and options of a run of about an hour."""
        examples = int(3600 * self.batch_size / trial.each)
        batch = max(2, min(self.batch_size, 16, examples // 100))
        paper = is_of_the_paper(self.command(), "steps", self.steps)
        sizes = f"It has {self.steps:,} steps of {self.batch_size:,} examples{', as the paper' if paper else ''}."
        return f"{sizes} --batch-size {batch} --steps {max(1, examples // batch)} takes about an hour."

    def shrunk(self, folder: Path) -> tuple[Self, float]:
        return self.one_step(), 1.0

    def unfinished(self, out: Path, origin: Origin) -> Path | None:
        from realmctl.training.takeover import taken_over

        return (taken_over(out, origin) if self.then_lr else None) or super().unfinished(out, origin)

    def _made(self, out: Path, origin: Origin, seen: Mapping[Path, object]) -> Artifact:
        if self.then_lr and processes.is_first():
            from realmctl.training.takeover import take_over

            take_over(out, origin)
        return super()._made(out, origin, seen)

    def estimate(self) -> dict[str, float]:
        return {"peak_lr": self.peak_lr} if self.steps else {}
