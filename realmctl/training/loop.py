"""The one training loop: steps, schedule, metrics, checkpoints, resume, and a clean stop.

Data order is a function of the step number alone, and every step seeds its own dropout, so a run resumed at step 10
equals one that never stopped (bit for bit on one CPU thread). A checkpoint is a folder that exists only once whole.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, TextIO

import numpy as np
import torch

from realmctl.artifacts import Writer
from realmctl.errors import InputError, RealmctlError, ResourceError
from realmctl.execution import processes
from realmctl.execution.signals import StopRequested, deferred
from realmctl.log import Progress, progress, say
from realmctl.nn.optimizer import BertAdamW, decay_groups
from realmctl.nn.precision import autocast, pick_device, seed_everything
from realmctl.training import data_parallel
from realmctl.training.checkpoint import Checkpoints
from realmctl.training.objective import Objective
from realmctl.training.schedule import OPTIMIZERS, Compute, Schedule

__all__ = ["Compute", "Schedule", "seed_of", "train"]

WINDOW = 50
"""Steps over which the final metrics are averaged."""
NOT_AVERAGED = ("step", "lr", "alarms")


def train(objective: Objective, schedule: Schedule, compute: Compute, out: Writer, what: str) -> dict[str, Any]:
    """Train to the end, going on from the newest checkpoint in `out`. Writes `metrics.jsonl`; returns the last means.

    Raises ConfigError before any step for settings that cannot work, InterruptedRun or KeyboardInterrupt after saving
    when asked to stop, InputError when the gradient is no longer finite, ResourceError when memory runs out.
    """
    schedule.check()
    compute.check()
    with data_parallel.joined(pick_device(compute.device)):
        return _Run(objective, schedule, compute, out, what).to_the_end()


def seed_of(*numbers: int) -> int:
    """One seed from several numbers (a run's seed and a step), well mixed, the same everywhere."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


class _Run:
    def __init__(self, objective: Objective, schedule: Schedule, compute: Compute, out: Writer, what: str) -> None:
        self.objective, self.schedule, self.compute, self.what = objective, schedule, compute, what
        self.device = pick_device(compute.device)
        objective.modules.to(self.device).train()
        self.optimizer = BertAdamW(
            decay_groups([objective.modules], schedule.weight_decay, objective.lr_multipliers),
            **OPTIMIZERS[schedule.optimizer],
        )
        self.checkpoints = Checkpoints(out.scratch("checkpoints"), objective.modules, self.optimizer)
        self.metrics = out.file("metrics.jsonl")
        self.recent: deque[dict[str, Any]] = deque(maxlen=WINDOW)
        self.seconds: deque[float] = deque(maxlen=WINDOW)

    def to_the_end(self) -> dict[str, Any]:
        step = self._take_up()
        with deferred() as stop, progress(self.schedule.steps, self.what, "steps") as bar:
            bar.advance(step)
            with self.metrics.open("a", encoding="utf-8", buffering=1) as log:
                while step < self.schedule.steps:
                    step += self._take(step, log, bar)
                    due = step == self.schedule.steps or step % self.compute.checkpoint_every == 0
                    if data_parallel.any_of(stop.signal is not None, self.device):
                        stop.signal = stop.signal or signal.SIGTERM
                    if (due or stop.signal is not None) and processes.first():
                        os.fsync(log.fileno())
                        self.checkpoints.save(step, self.objective.state())
                    if stop.signal is not None:
                        stop.leave(f"with a checkpoint at step {step} of {self.schedule.steps}")
        self.objective.modules.eval()
        return {"steps": step, **self._summary()}

    def _take_up(self) -> int:
        """Steps taken by earlier runs. Their log is cut back to the checkpoint: what came after it is taken again."""
        step, state = self.checkpoints.restore()
        with self.metrics.open("a+b") as log:
            log.seek(0)
            lines = list(islice(log, step))
            log.truncate(sum(map(len, lines)))
        self.recent.extend(json.loads(line) for line in lines[-WINDOW:])
        if state is not None:
            say(f"{self.what}: going on after step {step} of {self.schedule.steps}")
            self.objective.restore(state)
        data_parallel.start_alike(self.objective.modules, step, self.device)
        return step

    def _take(self, step: int, log: TextIO, bar: Progress) -> int:
        """One step, logged. Returns the steps taken: none when a wait inside it was broken off."""
        start = time.monotonic()
        try:
            extra = self.objective.before_step(step)
        except StopRequested:
            return 0
        except RealmctlError:  # the refresher was given up: what was learnt up to here is not lost
            self.checkpoints.save(step, self.objective.state())
            raise
        line: dict[str, Any] = {**self._guarded_step(step), **extra}
        line |= self.objective.after_step(line)
        self.seconds.append(time.monotonic() - start)
        log.write(json.dumps(line) + "\n")
        self.recent.append(line)
        bar.advance()
        return 1

    def _guarded_step(self, step: int) -> dict[str, float]:
        try:
            return self._step(step)
        except torch.OutOfMemoryError as error:
            raise ResourceError(
                f"out of memory at step {step + 1} of {self.what} ({str(error).splitlines()[0]}). Use a smaller --micro-batch "
                "where there is one, or a smaller --batch-size."
            ) from None

    def _step(self, step: int) -> dict[str, float]:
        others = [processes.number()] if not processes.first() else []  # their dropout is not the first one's
        seed_everything(seed_of(self.schedule.seed, step, *others))  # after a refresh, which draws numbers too
        with autocast(self.device, self.compute.precision):
            parts = self.objective.draw(step)
        total_loss, means = self._gradients(parts)
        learned, rate = total_loss is not None, self.schedule.rate(step)
        if learned:
            self._update(rate, step)
        norm = float(self.optimizer.gradient_norm) if learned else 0.0
        return {"step": step + 1, "loss": total_loss or 0.0, **means, "lr": rate, "grad_norm": norm}

    def _gradients(self, parts: Sequence[Any]) -> tuple[float | None, dict[str, float]]:
        """Back-propagate every part. Returns the batch's loss, None where nothing could be learnt, and its metrics."""
        total_loss: float | None = None
        sums: defaultdict[str, float] = defaultdict(float)
        counts: defaultdict[str, float] = defaultdict(float)
        for part in parts:
            with autocast(self.device, self.compute.precision):
                loss, terms = self.objective.loss(part)
            if loss is not None:
                loss.backward()  # type: ignore[no-untyped-call]
                total_loss = (total_loss or 0.0) + loss.item()
            for name, (value, count) in terms.items():
                sums[name] += value
                counts[name] += count
        if total_loss is not None:
            data_parallel.average_gradients(self.objective.modules)
            total_loss = data_parallel.mean_of(total_loss, self.device)
        for numbers in (sums, counts):
            data_parallel.add_up(numbers, self.device)
        return total_loss, {name: value / counts[name] for name, value in sums.items() if counts[name]}

    def _update(self, rate: float, step: int) -> None:
        self.optimizer.set_lr(rate)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if not torch.isfinite(self.optimizer.gradient_norm):
            raise InputError(
                f"{self.what} diverged at step {step + 1}: the gradient is not finite. Use a lower --lr or a longer --warmup; "
                "the checkpoint before it is kept."
            )

    def _summary(self) -> dict[str, float]:
        """Means over the last steps; the time of a step only here, for it is not a property of the model."""
        names = dict.fromkeys(name for line in self.recent for name in line if name not in NOT_AVERAGED)
        means = {}
        for name in names:
            values = [line[name] for line in self.recent if name in line]
            means[name] = round(sum(values) / len(values), 6)
        pace = {"seconds_per_step": round(sum(self.seconds) / len(self.seconds), 4)} if self.seconds else {}
        return {**means, **pace}
