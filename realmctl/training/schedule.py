"""Settings of a training run: steps, learning rate, seed, device. They are checked before the first step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from realmctl.errors import ConfigError
from realmctl.models.optimizer import bert_lr, warmup_steps
from realmctl.training.monitoring.tensorboard import LiveCurves

Optimizer = Literal["bert", "adamw"]
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "bert": {},
    "adamw": {"betas": (0.9, 0.98), "eps": 1e-8, "bias_correction": True},
}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Number of steps, peak learning rate, seed and optimizer.

    Args:
        steps: Number of training steps.
        lr: Peak learning rate.
        warmup: Steps of linear warm-up; None is BERT's rule, min(10000, max(100, steps / 10)).
        seed: Seed of data order, masks and dropout.
        optimizer: `bert`, AdamW as BERT and REALM used it, or `adamw`, with betas .9 and .98 and bias correction, which suits
            runs of hundreds of steps.
        weight_decay: Weight decay of all weights but biases and layer norms.
        stop_at_accuracy: Stop before the last step when the mean `accuracy` over the loop's window reaches this share. None
            takes all steps. The learning rate follows `steps` all the same.
    """

    steps: int
    lr: float
    warmup: int | None = None
    seed: int = 0
    optimizer: Optimizer = "bert"
    weight_decay: float = 0.01
    stop_at_accuracy: float | None = None

    @classmethod
    def of(cls, stage: Any, **others: Any) -> Schedule:
        """Return the fields of these names of a stage, where `others` does not give them."""
        values = {item.name: getattr(stage, item.name) for item in fields(cls) if hasattr(stage, item.name)}
        return cls(**{**values, **others})

    def check(self) -> None:
        """Raise ConfigError if a value cannot work."""
        if self.steps < 1 or not self.lr > 0 or (self.warmup or 0) < 0 or self.seed < 0:
            raise ConfigError(
                f"--steps {self.steps}, --lr {self.lr:g}, --warmup {self.warmup}, --seed {self.seed}: "
                "--steps and --lr must be above 0, --warmup and --seed at least 0."
            )
        if self.stop_at_accuracy is not None and not 0 < self.stop_at_accuracy <= 1:
            raise ConfigError(f"--stop-at-accuracy is {self.stop_at_accuracy:g}; it must be above 0 and at most 1.")

    def rate(self, step: int) -> float:
        """Return the learning rate of update `step`, from 0 (google-research/bert, optimization.py)."""
        warmup = warmup_steps(self.steps) if self.warmup is None else self.warmup
        return bert_lr(step, self.steps, warmup, self.lr)


@dataclass(frozen=True, kw_only=True)
class Compute:
    """Device, precision and checkpoint interval, which change the result by rounding at most, and the folder of live curves."""

    device: str = "auto"
    precision: str = "auto"
    checkpoint_every: int = 500
    tensorboard: Path | None = None

    @classmethod
    def of(cls, stage: Any) -> Compute:
        """Return the fields of these names of a stage."""
        return cls(**{item.name: getattr(stage, item.name) for item in fields(cls)})

    def check(self) -> None:
        """Raise ConfigError if a value cannot work, and ResourceError without the package for live curves."""
        LiveCurves.check(self.tensorboard)
        if self.checkpoint_every < 1:
            raise ConfigError(f"--checkpoint-every is {self.checkpoint_every}; it must be at least 1.")
