"""The training loop of all objectives: steps, schedule, metrics, checkpoints, resume and stop.

The data of a step and its dropout depend on the seed and the step number alone. A run that is resumed at step 10 therefore
equals a run that never stopped, bit for bit on one CPU thread.
"""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Generic

import numpy as np
import torch

from realmctl.artifacts import Writer
from realmctl.artifacts.disk import require_free_disk
from realmctl.errors import NotFiniteError, QualityError, RealmctlError, ResourceError, as_realmctl_error
from realmctl.execution import processes
from realmctl.execution.signals import StopRequested, deferred
from realmctl.log import Progress, progress, say
from realmctl.models.optimizer import BertAdamW, bert_lr, decay_groups
from realmctl.models.precision import autocast, pick_device, seed_everything
from realmctl.models.weights import first_not_finite
from realmctl.pipeline.trying import TrialWriter
from realmctl.training import data_parallel
from realmctl.training.checkpoint import Checkpoints, module_tensors, newest_sound
from realmctl.training.gradient_buckets import GradientBuckets
from realmctl.training.monitoring.curves import Curves
from realmctl.training.monitoring.loss_watch import LossWatch
from realmctl.training.objective import Objective, Observer, Part, StepSums, merged, require_scalar
from realmctl.training.settings.base import TrainSettings

WINDOW = 50
"""Number of last steps whose metrics are averaged for the manifest."""
WEIGHT_DECAY = 0.01
"""Weight decay of all weights but biases and layer norms (google-research/bert, optimization.py)."""
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "bert": {},
    "adamw": {"betas": (0.9, 0.98), "eps": 1e-8, "bias_correction": True},
}
"""`bert` is AdamW as BERT and REALM used it. `adamw` suits runs of hundreds of steps."""
WATCH, SPENT = "loss_watch", "seconds_spent"
"""Names of the loop's own state beside that of the observers, in a checkpoint."""
NOT_AVERAGED = ("step", "lr", "alarms")


def train(
    objective: Objective[Part],
    settings: TrainSettings,
    out: Writer,
    what: str,
    observers: Sequence[Observer] = (),
    *,
    chance: float = 0.0,
) -> dict[str, Any]:
    """Train to the end, from the newest usable checkpoint in `out` if there is one.

    Args:
        objective: Modules, data and loss.
        settings: Steps, learning rate, seed, device, precision and checkpoint interval.
        out: The artifact being written. It receives `metrics.jsonl`: a line for each step, and one for what is measured at the end.
        what: Name of the stage for messages.
        observers: What happens beside the steps, in this order.
        chance: The loss of a model that tells nothing apart, in nats; 0 where it is not known.

    Returns:
        `steps`, the means of the metrics over the last 50 steps, `seconds_per_step`, and in `alarms` the episodes of each alarm of
        the loss.

    Raises:
        ResourceError: Memory or disk space ran out, or a package is missing.
        InterruptedRun: The run was asked to stop by a signal. A checkpoint was saved.
        KeyboardInterrupt: The run was asked to stop by Ctrl-C. A checkpoint was saved.
        QualityError: The run diverged: its loss, gradient, weights or what it computes are not finite. Or an alarm is on at which the run
            stops.
    """
    curves = settings.curves(what, out)
    out.sources_read()
    with data_parallel.process_group(pick_device(settings.device)):
        return _Run(objective, settings, out, what, observers, curves, chance).to_the_end()


@contextmanager
def trained_weights(settings: TrainSettings, out: Writer, what: str) -> Iterator[None]:
    """Within the block, something is computed with the weights that `train` left, with the same arguments.

    Raises:
        QualityError: What it gives is not finite: the run diverged.
    """
    checkpoints = out.scratch("checkpoints")
    try:
        yield
    except NotFiniteError as error:
        raise _diverged(settings, checkpoints, what, settings.steps, str(error)) from None


def _diverged(settings: TrainSettings, checkpoints: Path, what: str, step: int, why: str) -> QualityError:
    """The error of a run whose weights after `step` steps are of no use: why, and the command that goes on from before."""
    start, lower = newest_sound(checkpoints, before=step), settings.lr_at(max(0, step - 1)) / 10
    kept = (
        f"The checkpoint of step {start} is from before its loss left its range"
        if start
        else "No checkpoint is from before"
    )
    return QualityError(
        f"{what} diverged after {step} of {settings.steps} steps: {why.rstrip('.')}. Nothing was published. {kept}: the same command "
        f"with --then-lr {start}={lower:g} {'goes on from there' if start else 'begins again'} with a lower rate. Or use a longer "
        "--warmup."
    )


def seed_of(*numbers: int) -> int:
    """Return one seed made from several numbers, such as a run's seed and a step. It is the same on every machine."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


class _Run(Generic[Part]):
    def __init__(
        self,
        objective: Objective[Part],
        settings: TrainSettings,
        out: Writer,
        what: str,
        observers: Sequence[Observer],
        curves: Curves,
        chance: float,
    ) -> None:
        self.objective, self.settings, self.what, self.observers = objective, settings, what, observers
        self.device = pick_device(settings.device)
        objective.modules.to(self.device).train()
        self.optimizer = BertAdamW(
            decay_groups([objective.modules], WEIGHT_DECAY, objective.lr_multipliers), **OPTIMIZERS[settings.optimizer]
        )
        self.buckets = GradientBuckets(objective.modules)
        self.metrics = out.file("metrics.jsonl")
        self.checkpoints = Checkpoints(out.scratch("checkpoints"), objective.modules, self.optimizer, self.metrics)
        self.curves = curves
        self.watch = LossWatch(settings.steps, chance, settings.stop_on, what)
        self.trial = out if isinstance(out, TrialWriter) else None
        self.recent: deque[dict[str, Any]] = deque(maxlen=WINDOW)
        self.seconds: deque[float] = deque(maxlen=WINDOW)
        self.spent = 0.0  # seconds in steps so far, also in processes before this one

    def to_the_end(self) -> dict[str, Any]:
        """Take all steps that are left. Returns the metrics for the manifest."""
        step = self._resume()
        self._check_disk()
        self.curves.begin(step, self.metrics)
        with self.curves, self.metrics.open("ab", buffering=0) as log:
            with deferred() as stop, progress(self.settings.steps, self.what, "steps") as bar:
                bar.skip(step)
                while not self._is_finished(step):
                    step += self._take(step, log, bar)
                    due = self._is_finished(step) or step % self.settings.checkpoint_every == 0
                    if data_parallel.anyone(stop.signal is not None):
                        stop.signal = stop.signal or signal.SIGTERM
                    if due or stop.signal is not None:
                        os.fsync(log.fileno())
                        self._save(step)
                    if stop.signal is not None:
                        stop.leave(f"with a checkpoint at step {step} of {self.settings.steps}")
            self._measure_at_end(step, log)
        if step < self.settings.steps:
            means = {name: self._mean(name) for name in ("loss", "accuracy")}
            said = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items() if mean is not None)
            say(f"{self.what}: stopped after step {step} of {self.settings.steps}, {said}")
        self.objective.modules.eval()
        return {"steps": step, **self._summary(), "alarms": self.watch.alarms.counts}

    def _is_finished(self, step: int) -> bool:
        """Return whether all steps are taken, an observer ends the run, or its time is over."""
        over = self.settings.seconds is not None and data_parallel.anyone(self.spent >= self.settings.seconds)
        return step >= self.settings.steps or any(observer.finished for observer in self.observers) or over

    def _check_disk(self) -> None:
        """Check that the disk has room for the checkpoints. A trial is told how much they need instead."""
        needed = self.checkpoints.largest_bytes()
        if self.trial:
            self.trial.checkpoint_bytes = needed
        elif processes.is_first():
            require_free_disk(self.checkpoints.folder, needed, f"the checkpoints of {self.what}")

    def _resume(self) -> int:
        """Load the newest usable checkpoint. Returns the number of steps taken so far, the same in all processes.

        The first process chooses the checkpoint, because it alone may move a damaged one away.
        """
        step = self.checkpoints.restore(self._restore) if processes.is_first() else 0
        chosen = int(data_parallel.from_first(step))
        if not processes.is_first():
            step = self.checkpoints.restore(self._restore, chosen)
        if step:
            say(f"{self.what}: continuing after step {step} of {self.settings.steps}")
        self.recent.extend(json.loads(line) for line in self.metrics.read_text().splitlines()[-WINDOW:])
        data_parallel.broadcast_weights(self.objective.modules, step)
        return step

    def _restore(self, state: Mapping[str, Any]) -> None:
        for observer in self.observers:
            observer.restore(state.get(observer.name))
        self.watch.restore(state[WATCH])
        self.spent = state[SPENT]

    def _save(self, step: int) -> None:
        """Write a checkpoint, in the first process. Raises QualityError in all of them when the weights are not finite."""
        if step and (name := first_not_finite(module_tensors(self.objective.modules))):
            raise self._diverged(step, f"the tensor '{name}' is not finite")
        if not processes.is_first():
            return
        kept = {observer.name: observer.state() for observer in self.observers}
        state = {name: value for name, value in kept.items() if value is not None}
        state |= {WATCH: self.watch.state(), SPENT: self.spent}
        self.checkpoints.save(step, state, sound=self.watch.in_range)

    def _take(self, step: int, log: BinaryIO, bar: Progress) -> int:
        """Take one step and log it. Returns the number of steps taken: 0 when a wait inside it was asked to stop."""
        start = time.monotonic()
        try:
            self.watch.alarms.stop_if_raised(step)
            before = [observer.before_step(step) for observer in self.observers]
        except StopRequested:
            return 0
        except NotFiniteError as error:
            raise self._diverged(error.step or step, str(error)) if step else error from None
        except RealmctlError:  # the refresher failed permanently; save the progress made so far
            self._save(step)
            raise
        line = merged(self._guarded_step(step), *before)
        line = merged(line, {"alarms": self.watch.observe(line)})
        for observer in self.observers:
            line = merged(line, observer.after_step(line))
        self.seconds.append(time.monotonic() - start)
        self.spent += self.seconds[-1]
        self._log(line, log)
        self.curves.add(line)
        self.recent.append(line)
        bar.advance(1, self._progress_note())
        return 1

    def _measure_at_end(self, step: int, log: BinaryIO) -> None:
        """Log what observers measure after the last step. A run that was resumed after that step measures again."""
        try:
            found = merged(*(observer.at_end(step) for observer in self.observers))
        except NotFiniteError as error:
            raise self._diverged(step, str(error)) from None
        if found:
            line = {"step": step, **found}
            self._log(line, log)
            self.curves.add(line)

    def _progress_note(self) -> str:
        """Return the means of the last steps, which the progress display shows."""
        names = {"loss": "loss", "retrieval_utility": "utility"}
        means = {name: self._mean(name) for name in names}
        return ", ".join(f"{names[name]} {mean:.3f}" for name, mean in means.items() if mean is not None)

    def _mean(self, name: str) -> float | None:
        """Return the mean of a metric over the last steps. None if no step has it."""
        values = [line[name] for line in self.recent if name in line]
        return sum(values) / len(values) if values else None

    def _log(self, line: dict[str, Any], log: BinaryIO) -> None:
        data = json.dumps(line).encode() + b"\n"
        try:
            if log.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise as_realmctl_error(error, self.metrics) or error from None

    def _guarded_step(self, step: int) -> dict[str, float]:
        try:
            return self._step(step)
        except NotFiniteError as error:
            raise self._diverged(step, str(error)) if step else error from None
        except torch.OutOfMemoryError as error:
            raise ResourceError(
                f"out of memory at step {step + 1} of {self.what} ({str(error).splitlines()[0]}). Use a smaller --micro-batch "
                "(0 is the whole batch), or a smaller --batch-size."
            ) from None

    def _step(self, step: int) -> dict[str, float]:
        others = [processes.rank()] if not processes.is_first() else []  # each process draws its own dropout masks
        seed_everything(seed_of(self.settings.seed, step, *others))  # after a refresh, which draws random numbers too
        with autocast(self.device, self.settings.precision):
            parts = self.objective.draw(step)
        sums = self._gradients(parts)
        rate = bert_lr(step, self.settings.steps, self.settings.warmup_steps, self.settings.lr_at(step))
        learned = data_parallel.anyone(sums.learned)
        norm = self._update(rate) if learned else 0.0
        total_loss, means = _joined(data_parallel.exchange(sums.read()))
        if not (math.isfinite(norm) and math.isfinite(total_loss or 0.0)):
            raise self._diverged(step, f"the {'loss' if math.isfinite(norm) else 'gradient'} is not finite")
        return {"step": step + 1, "loss": total_loss or 0.0, **means, "lr": rate, "grad_norm": norm}

    def _gradients(self, parts: Sequence[Part]) -> StepSums:
        """Back-propagate every micro-batch of this process. Returns its losses and metrics.

        The gradients of all processes are added once, during the last backward pass.
        """
        found = StepSums()
        for number, part in enumerate(parts, 1):
            with autocast(self.device, self.settings.precision):
                loss, sums = self.objective.loss(part)
            if loss is not None:
                require_scalar(loss, self.objective)
                self.buckets.start(last=number == len(parts))
                loss.backward()  # type: ignore[no-untyped-call]
            found.add(loss, sums)
        self.buckets.finish()
        return found

    def _update(self, rate: float) -> float:
        """Update the weights. Returns the norm of the gradient."""
        self.optimizer.set_lr(rate)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(self.optimizer.gradient_norm)

    def _diverged(self, step: int, why: str) -> QualityError:
        return _diverged(self.settings, self.checkpoints.folder, self.what, step, why)

    def _summary(self) -> dict[str, float]:
        """Means over the last steps. The time of a step is not in `metrics.jsonl`, so that equal runs write equal files."""
        names = dict.fromkeys(name for line in self.recent for name in line if name not in NOT_AVERAGED)
        means = {name: round(self._mean(name) or 0.0, 6) for name in names}
        time_taken = {"seconds_per_step": round(sum(self.seconds) / len(self.seconds), 4)} if self.seconds else {}
        return {**means, **time_taken}


def _joined(
    of_all: Sequence[tuple[float | None, Mapping[str, Sequence[float]]]],
) -> tuple[float | None, dict[str, float]]:
    """Return the loss and the metrics of the whole batch from the losses and sums of all processes."""
    losses = [loss for loss, _ in of_all if loss is not None]
    names = dict.fromkeys(name for _, terms in of_all for name in terms)
    metrics = {}
    for name in names:
        value, count = (sum(terms[name][place] for _, terms in of_all if name in terms) for place in (0, 1))
        if count:
            metrics[name] = value / count
    return (sum(losses) if losses else None), metrics
