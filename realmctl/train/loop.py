"""The one training loop: steps, schedule, metrics, checkpoints, resume, and a clean stop.

Data order is a function of the step number alone, and every step seeds its own dropout, so a run resumed at step 10
equals one that never stopped (bit for bit on one CPU thread). A checkpoint is a folder that exists only once whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TextIO

import numpy as np
import torch
from torch import Tensor, nn

from realmctl.artifact import Writer
from realmctl.errors import ConfigError, InputError, ResourceError
from realmctl.log import Progress, progress, say
from realmctl.nn.optimizer import BertAdamW, bert_lr, decay_groups, warmup_steps
from realmctl.nn.precision import autocast, pick_device, seed_everything
from realmctl.signals import StopRequested, deferred
from realmctl.train.checkpoint import Checkpoints

Sums = Mapping[str, tuple[float, float]]
WINDOW = 50
"""Steps over which the final metrics are averaged."""


class Objective(Protocol):
    """What is trained. One step is one batch, drawn by step number, in one part or several (micro-batches)."""

    modules: nn.ModuleDict

    def draw(self, step: int) -> Sequence[Any]:
        """The parts of the batch of step `step` (from 0). Their losses add up to the batch's."""
        ...

    def loss(self, part: Any) -> tuple[Tensor | None, Sums]:
        """The part's loss (None: nothing to learn from), and {metric: (sum, count)}, averaged over the batch."""
        ...

    def before_step(self, step: int) -> Mapping[str, float]:
        """Called before each draw; what it returns is logged with the step."""
        ...

    def state(self) -> dict[str, Any]:
        """JSON that a checkpoint must keep beside the weights."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` returned."""
        ...


class SelfContained:
    """Base of objectives that need nothing between steps."""

    def before_step(self, step: int) -> Mapping[str, float]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


Optimizer = Literal["bert", "adamw"]
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "bert": {},
    "adamw": {"betas": (0.9, 0.98), "eps": 1e-8, "bias_correction": True},
}


@dataclass(frozen=True)
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
        if self.steps < 1 or self.lr <= 0 or (self.warmup or 0) < 0:
            raise ConfigError(f"steps {self.steps}, lr {self.lr}, warmup {self.warmup}: steps and lr must be above 0, warmup not below.")

    def rate(self, step: int) -> float:
        """Learning rate of update `step`, from 0 (google-research/bert, optimization.py)."""
        warmup = warmup_steps(self.steps) if self.warmup is None else self.warmup
        return bert_lr(step, self.steps, warmup, self.lr)


@dataclass(frozen=True)
class Compute:
    """Where and how to compute; none of it is meant to change the result beyond rounding."""

    device: str = "auto"
    precision: str = "auto"
    checkpoint_every: int = 500


def train(objective: Objective, schedule: Schedule, compute: Compute, out: Writer, what: str) -> dict[str, Any]:
    """Train to the end, going on from the newest checkpoint in `out`. Writes `metrics.jsonl`; returns the last means.

    Raises InterruptedRun or KeyboardInterrupt after saving when asked to stop, ResourceError when memory runs out.
    """
    return _Run(objective, schedule, compute, out, what).to_the_end()


def seed_of(*numbers: int) -> int:
    """One seed from several numbers (a run's seed and a step), well mixed, the same everywhere."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


class _Run:
    def __init__(self, objective: Objective, schedule: Schedule, compute: Compute, out: Writer, what: str) -> None:
        self.objective, self.schedule, self.compute, self.what = objective, schedule, compute, what
        self.device = pick_device(compute.device)
        objective.modules.to(self.device).train()
        self.optimizer = BertAdamW(decay_groups([objective.modules], schedule.weight_decay), **OPTIMIZERS[schedule.optimizer])
        self.checkpoints = Checkpoints(out.scratch("checkpoints"), objective.modules, self.optimizer)
        self.metrics = out.file("metrics.jsonl")
        self.recent: list[dict[str, float]] = []

    def to_the_end(self) -> dict[str, Any]:
        step, state = self.checkpoints.restore()
        self._keep_metrics(step)
        if state is not None:
            say(f"{self.what}: going on after step {step} of {self.schedule.steps}")
            self.objective.restore(state)
        with deferred() as stop, progress(self.schedule.steps, self.what, "steps") as bar:
            bar.advance(step)
            with self.metrics.open("a", encoding="utf-8") as log:
                while step < self.schedule.steps:
                    step += self._take(step, log, bar)
                    due = step == self.schedule.steps or step % self.compute.checkpoint_every == 0
                    if due or stop.signal is not None:
                        log.flush()
                        self.checkpoints.save(step, self.objective.state())
                    if stop.signal is not None and step < self.schedule.steps:
                        stop.leave(f"with a checkpoint at step {step} of {self.schedule.steps}")
        self.objective.modules.eval()
        return {"steps": step, **self._summary()}

    def _take(self, step: int, log: TextIO, bar: Progress) -> int:
        """One step, logged. Returns the steps taken: none when a wait inside it was broken off."""
        try:
            line = self._guarded_step(step)
        except StopRequested:
            return 0
        log.write(json.dumps(line) + "\n")
        self.recent = [*self.recent[1 - WINDOW :], line]
        bar.advance()
        return 1

    def _guarded_step(self, step: int) -> dict[str, float]:
        try:
            return self._step(step)
        except torch.OutOfMemoryError as error:
            raise ResourceError(
                f"out of memory at step {step} of {self.what} ({str(error).splitlines()[0]}). Use a smaller --micro-batch or --batch-size."
            ) from None

    def _step(self, step: int) -> dict[str, float]:
        start = time.monotonic()
        seed_everything(seed_of(self.schedule.seed, step))
        extra = self.objective.before_step(step)
        totals: dict[str, tuple[float, float]] = {}
        total_loss, learned = 0.0, False
        for part in self.objective.draw(step):
            with autocast(self.device, self.compute.precision):
                loss, sums = self.objective.loss(part)
            if loss is not None:
                loss.backward()  # type: ignore[no-untyped-call]
                total_loss, learned = total_loss + loss.item(), True
            for name, (value, count) in sums.items():
                before = totals.get(name, (0.0, 0.0))
                totals[name] = (before[0] + value, before[1] + count)
        rate = self.schedule.rate(step)
        if learned:
            self._update(rate, step)
        means = {name: value / count for name, (value, count) in totals.items() if count}
        norm = float(self.optimizer.gradient_norm) if learned else 0.0
        return {"step": step + 1, "loss": total_loss, **means, **extra, "lr": rate, "grad_norm": norm, "seconds": time.monotonic() - start}

    def _update(self, rate: float, step: int) -> None:
        self.optimizer.set_lr(rate)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if not torch.isfinite(self.optimizer.gradient_norm):
            raise InputError(
                f"training diverged at step {step}: the gradient is not finite. Use a lower --lr or a longer --warmup; the checkpoint before it is kept."
            )

    def _summary(self) -> dict[str, float]:
        names = dict.fromkeys(name for line in self.recent for name in line if name not in ("step", "seconds", "lr"))
        means = {}
        for name in names:
            values = [line[name] for line in self.recent if name in line]
            means[name] = round(sum(values) / len(values), 6)
        return means

    def _keep_metrics(self, step: int) -> None:
        """Cut the log back to the checkpoint: steps after it are taken again."""
        lines = self.metrics.read_text(encoding="utf-8").splitlines() if self.metrics.exists() else []
        self.metrics.write_text("".join(line + "\n" for line in lines[:step]), encoding="utf-8")
        self.recent = [json.loads(line) for line in lines[max(0, step - WINDOW) : step]]

