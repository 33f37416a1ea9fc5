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

import torch

from realmctl.artifacts import Writer
from realmctl.artifacts.hashing import read_sealed, write_sealed
from realmctl.errors import ConfigError
from realmctl.execution import processes
from realmctl.log import progress, say
from realmctl.models.precision import autocast, pick_device
from realmctl.training import data_parallel
from realmctl.training.objective import Objective, Part
from realmctl.training.settings.base import TrainSettings
from realmctl.training.settings.cloze import ClozeSettings

TIMED, ENOUGH_SECONDS = 3, 5.0
"""Steps that are timed, after one that is slower than the others; fewer where they take this long together."""
MEASUREMENTS = 6
"""Measurements that a run has beside its steps, at most: at the start, four times between, at the end, and one to spare."""
SHARE = 0.95
"""Share of the time that the steps are planned for."""
FEWEST_STEPS = 20
"""Steps that a training needs to show a gain: 50 were measured (docs/results/adapt.md)."""

S = TypeVar("S", bound=ClozeSettings)


class TooFewSteps(ConfigError):
    """So few steps fit into the minutes that no gain could be shown. steps: how many. minutes: those that enough steps need."""

    def __init__(self, what: str, steps: int, given: float, minutes: float) -> None:
        super().__init__(
            f"{what}: {steps} steps fit into --minutes {given:.3g}, and a gain can be shown by {FEWEST_STEPS} or more. They need --minutes {minutes:.3g} "
            "on this machine."
        )
        self.steps, self.minutes = steps, minutes


def within_minutes(
    settings: S,
    out: Writer,
    what: str,
    objective: Callable[[], Objective[Part]],
    measure: Callable[[], object] | None = None,
    beside: Callable[[], float] = lambda: 0.0,
) -> S:
    """Return the settings with as many steps as fit into `settings.seconds`, at most `settings.steps`.

    The timing itself is taken off the time.

    Args:
        settings: Those of the training. Without a limit they are returned as they are.
        out: The artifact being written, which keeps the number.
        what: Name of the stage for messages.
        objective: What will be trained, or what takes as long. Its gradients are lost; its weights do not change.
        measure: A measurement that the run repeats, to be timed too.
        beside: Seconds that each step takes beside what is timed, on average.

    Raises:
        TooFewSteps: The weights are kept on a shown gain alone, and too few steps fit to show one.
    """
    if settings.seconds is None:
        return settings
    path = out.scratch("budget") / "steps.json"
    steps = data_parallel.from_first(_kept(path))
    if steps is None:
        say(f"{what}: a few steps are timed, to know how many fit into {settings.minutes:.3g} minutes")
        start = time.monotonic()
        with progress(None, f"{what}, timing", "steps") as bar:
            step = _seconds(objective(), settings, bar.advance)
        told, each, fixed = f"a step takes {step:.2g} s", step + beside(), 0.0
        if measure is not None:
            begin = time.monotonic()
            measure()
            seconds, every = time.monotonic() - begin, settings.cloze_every
            told += f" and a measurement {seconds:.2g} s"
            each, fixed = (each + seconds / every, 2 * seconds) if every else (each, MEASUREMENTS * seconds)
        fixed += time.monotonic() - start
        fits = int((SHARE * settings.seconds - fixed) / each)
        steps = data_parallel.from_first(max(1, min(settings.steps, fits)))
        if settings.keep == "gain" and steps < (fewest := min(FEWEST_STEPS, settings.steps)):
            raise TooFewSteps(what, max(0, fits), settings.seconds / 60, (fixed + fewest * each) / SHARE / 60)
        say(f"{what}: {told}, so {steps} step{'s are' if steps > 1 else ' is'} taken")
        if processes.is_first():
            write_sealed(path, {"steps": steps})
    return dataclasses.replace(settings, steps=steps)


def _kept(path: Path) -> int | None:
    """The number of steps that an earlier process decided on; None where there is none."""
    try:
        return int(read_sealed(path)["steps"])
    except (OSError, ValueError):
        return None


def _seconds(objective: Objective[Part], settings: TrainSettings, on_step: Callable[[], None]) -> float:
    """Seconds of a step without its update. The first one, which is slower, does not count."""
    device = pick_device(settings.device)
    objective.modules.to(device).train()
    _step(objective, settings, device, 0)
    on_step()
    begin = time.monotonic()
    for number in range(1, TIMED + 1):
        _step(objective, settings, device, number)
        on_step()
        taken = time.monotonic() - begin
        if data_parallel.anyone(taken >= ENOUGH_SECONDS):
            break
    objective.modules.zero_grad(set_to_none=True)
    return taken / number


def _step(objective: Objective[Part], settings: TrainSettings, device: torch.device, number: int) -> None:
    with autocast(device, settings.precision):
        parts = objective.draw(number)
    for part in parts:
        with autocast(device, settings.precision):
            loss, _ = objective.loss(part)
        if loss is not None:
            loss.backward()  # type: ignore[no-untyped-call]
            float(loss.detach())  # waits for the device
