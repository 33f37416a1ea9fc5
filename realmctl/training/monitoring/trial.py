"""A trial: the first steps of a training stage, taken in a temporary folder to measure time, memory and disk. For `--dry-run`."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from realmctl.artifacts import Origin, Writer
from realmctl.artifacts.temporary import temporary_folder
from realmctl.log import say

MEASURED_STEPS = range(2, 20)
"""Fewest and most steps that are measured, after the first one, which is slower than the others."""
ENOUGH_SECONDS = 3.0
"""The trial ends when the measured steps took this long together."""


class TrialEnd(Exception):
    """Raised to leave a stage after the steps of a trial."""


@dataclass
class Trial(Writer):
    """The writer of a trial. The training loop reports each step to it, and stops when `step_taken` raises TrialEnd."""

    begin: float = field(default_factory=time.monotonic)
    first_step_begins: float = 0.0
    ends: list[float] = field(default_factory=list)
    steps: int = 0
    disk_bytes: float = 0.0
    left_out: float = 0.0
    """Seconds of work before the first step of which the trial did only a sample."""

    def start(self, steps: int, disk_bytes: float) -> None:
        """Called before the first step. `steps`: steps of the whole run. `disk_bytes`: its checkpoints and weights."""
        self.steps, self.disk_bytes, self.first_step_begins = steps, disk_bytes, time.monotonic()

    def step_taken(self) -> None:
        """Count one step. Raises TrialEnd when enough steps are measured."""
        self.ends.append(time.monotonic())
        measured = len(self.ends) - 1
        if measured >= MEASURED_STEPS.start and self.ends[-1] - self.ends[0] >= ENOUGH_SECONDS:
            raise TrialEnd
        if measured >= MEASURED_STEPS.stop or len(self.ends) == self.steps:
            raise TrialEnd

    def estimate(self) -> dict[str, float]:
        """Return the estimates for the whole run, with the names of `Stage.trial`."""
        if not self.ends:
            return {"seconds": time.monotonic() - self.begin + self.left_out}
        times = [end - start for start, end in zip(self.ends, self.ends[1:], strict=False)]
        step = statistics.median(times or [self.ends[0] - self.first_step_begins])
        before = self.first_step_begins - self.begin + self.left_out
        return {
            "seconds": before + step * self.steps,
            "seconds_before_first_step": before,
            "seconds_per_step": step,
            **memory(),
            "disk_bytes": self.disk_bytes,
        }


def trial_of(run: Callable[[Writer], Mapping[str, Any]], origin: Origin) -> dict[str, float]:
    """Take the first steps of a training stage and return the estimates for the whole run.

    Args:
        run: The stage's `run`.
        origin: Its origin.

    Returns:
        `seconds`, `seconds_before_first_step`, `seconds_per_step`, `memory_bytes`, `gpu_memory_bytes` where there is a GPU, and
        `disk_bytes`. A stage that takes no steps is run to its end, but for what is sampled, and the result has its `seconds` alone.
    """
    say("dry run: the first steps are taken in a temporary folder, to measure time and memory")
    with temporary_folder() as folder:
        trial = Trial(folder, origin)
        with suppress(TrialEnd):
            run(trial)
        return trial.estimate()


def memory() -> dict[str, float]:
    """Return the largest memory so far of this process, and of PyTorch on the GPUs, in bytes."""
    found = {"memory_bytes": 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    if torch.cuda.is_available():
        found["gpu_memory_bytes"] = float(sum(map(torch.cuda.max_memory_reserved, range(torch.cuda.device_count()))))
    return found
