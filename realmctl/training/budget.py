"""A training that ends when its minutes are over: the number of steps that fit is decided before the first one.

The steps decide the result. So a few steps are timed, without an update of the weights, and the run is then that of `--steps` with the number
that fits, with its schedule: its weights are the same bit for bit. The number is kept with the unfinished run, and a run that is resumed takes
it over. If the machine becomes slower afterwards, the loop stops when the time is over, wherever it is (`realmctl.training.loop`).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from realmctl.artifacts import Writer
from realmctl.artifacts.hashing import read_sealed, write_sealed
from realmctl.execution import processes
from realmctl.log import say
from realmctl.models.precision import autocast, pick_device
from realmctl.training import data_parallel
from realmctl.training.objective import Objective, Part
from realmctl.training.settings import TrainSettings

TIMED = 3
"""Steps that are timed, after one that is slower than the others."""
MEASUREMENTS = 7
"""Measurements that a run has beside its steps, at most: at the start, five times, at the end."""
SHARE = 0.95
"""Share of the time that the steps are planned for."""

S = TypeVar("S", bound=TrainSettings)


def within_minutes(
    objective: Objective[Part], settings: S, out: Writer, measure: Callable[[], object] | None = None
) -> S:
    """Return the settings with as many steps as fit into `settings.seconds`, at most `settings.steps`.

    Args:
        objective: What will be trained. Its gradients are lost; its weights do not change.
        settings: Those of the training. Without a limit they are returned as they are.
        out: The artifact being written, which keeps the number.
        measure: A measurement that the run repeats, to be timed too.
    """
    if settings.seconds is None:
        return settings
    path = out.scratch("budget") / "steps.json"
    steps = data_parallel.from_first(_kept(path))
    if steps is None:
        step, other = _seconds(objective, settings), 0.0
        if measure is not None:
            begin = time.monotonic()
            measure()
            other = MEASUREMENTS * (time.monotonic() - begin)
        fit = int((SHARE * settings.seconds - other) / step)
        steps = data_parallel.from_first(max(1, min(settings.steps, fit)))
        say(f"a step takes {step:.2g} s, so {steps} steps are taken in {settings.seconds / 60:g} minutes")
        if processes.is_first():
            write_sealed(path, {"steps": steps})
    return dataclasses.replace(settings, steps=steps)


def _kept(path: Path) -> int | None:
    """The number of steps that an earlier process decided on; None where there is none."""
    try:
        return int(read_sealed(path)["steps"])
    except (OSError, ValueError):
        return None


def _seconds(objective: Objective[Part], settings: TrainSettings) -> float:
    """Seconds of a step without its update."""
    device = pick_device(settings.device)
    objective.modules.to(device).train()
    for number in range(TIMED + 1):
        if number == 1:
            begin = time.monotonic()
        with autocast(device, settings.precision):
            parts = objective.draw(number)
        for part in parts:
            with autocast(device, settings.precision):
                loss, _ = objective.loss(part)
            if loss is not None:
                loss.backward()  # type: ignore[no-untyped-call]
                float(loss.detach())  # waits for the device
    objective.modules.zero_grad(set_to_none=True)
    return (time.monotonic() - begin) / TIMED
