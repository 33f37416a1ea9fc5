"""How long and how fast to train, and where: checked before any step is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from realmctl.errors import ConfigError
from realmctl.nn.optimizer import bert_lr, warmup_steps

Optimizer = Literal["bert", "adamw"]
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "bert": {},
    "adamw": {"betas": (0.9, 0.98), "eps": 1e-8, "bias_correction": True},
}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long, how fast, from which seed; `warmup` None is BERT's min(10000, max(100, steps / 10)).

    `optimizer`: BERT's own, as the papers used it, or AdamW with a short memory, which suits runs of hundreds of steps.
    """

    steps: int
    lr: float
    warmup: int | None = None
    seed: int = 0
    optimizer: Optimizer = "bert"
    weight_decay: float = 0.01

    def check(self) -> None:
        """Raise ConfigError for values that cannot work."""
        if self.steps < 1 or not self.lr > 0 or (self.warmup or 0) < 0 or self.seed < 0:
            raise ConfigError(
                f"--steps {self.steps}, --lr {self.lr:g}, --warmup {self.warmup}, --seed {self.seed}: "
                "steps and lr must be above 0, warmup and seed not below."
            )

    def rate(self, step: int) -> float:
        """Learning rate of update `step`, from 0 (google-research/bert, optimization.py)."""
        warmup = warmup_steps(self.steps) if self.warmup is None else self.warmup
        return bert_lr(step, self.steps, warmup, self.lr)


@dataclass(frozen=True, kw_only=True)
class Compute:
    """Where and how to compute; none of it is meant to change the result beyond rounding."""

    device: str = "auto"
    precision: str = "auto"
    checkpoint_every: int = 500

    def check(self) -> None:
        """Raise ConfigError for values that cannot work."""
        if self.checkpoint_every < 1:
            raise ConfigError(f"--checkpoint-every is {self.checkpoint_every}; the least is 1.")
