"""A discrete-event simulation of a trainer and its refresher: how old the index is, and how long training waits.

The trainer takes steps. At every `every`-th step it leaves a snapshot. The refresher takes the newest snapshot when it is free,
and the trainer changes to the new index at the first step after it is whole. Training waits while the index is older than
`max_age` steps. docs/refresh.md describes the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Refreshing:
    """What is simulated.

    Attributes:
        steps: Steps of the run.
        step_seconds: Mean time of a step while the refresher does not compete with it.
        every: Steps between snapshots.
        embed_seconds: Mean time in which the refresher embeds all blocks while nothing else runs.
        build_seconds: Mean time in which one device then builds the index.
        max_age: Age in steps at which training waits; None means never.
        shared: Whether trainer and refresher share one device: each then has half of it while both work.
        spread: Standard deviation of the times over their means.
        inline: Whether the trainer itself makes the index, and stands still meanwhile.
    """

    steps: int
    step_seconds: float
    every: int
    embed_seconds: float
    build_seconds: float = 0.0
    max_age: int | None = None
    shared: bool = False
    spread: float = 0.1
    inline: bool = False


@dataclass(frozen=True)
class IndexAges:
    """What the simulation found. Ages are in steps, over all steps of the run."""

    mean: float
    median: float
    p95: float
    largest: int
    waited_seconds: float
    seconds: float
    refreshes: int


def simulate(run: Refreshing, seed: int = 0) -> IndexAges:
    """Simulate a run.

    Times are drawn from a gamma distribution with the given mean and spread, so they are above 0.
    """
    random = np.random.default_rng(seed)
    step_times = _times(random, run.step_seconds, run.spread, run.steps)
    refresh_times = iter(_times(random, run.embed_seconds + run.build_seconds, run.spread, run.steps // run.every + 2))
    ages = np.zeros(run.steps, np.int64)
    now = waited = left = 0.0
    index = newest = made = refreshes = (
        0  # the steps of the index in use, of the newest snapshot, and of the index being made
    )

    for step in range(run.steps):
        if step and step % run.every == 0:
            newest = step
            if run.inline:
                now += next(refresh_times)
                index, refreshes = step, refreshes + 1
        busy = left > 0
        if not busy and not run.inline and newest > index:
            made, left, busy = newest, next(refresh_times), True
        if busy and run.max_age is not None and step - index > run.max_age:
            now, waited, left = now + left, waited + left, 0.0
            index, refreshes, busy = made, refreshes + 1, False
            if newest > index:
                made, left, busy = newest, next(refresh_times), True
        ages[step] = step - index
        time = float(step_times[step])
        if busy:
            time, left = _both_work(time, left, run.shared)
            if left <= 0:
                index, refreshes = made, refreshes + 1
        now += time
    return IndexAges(
        float(ages.mean()),
        float(np.median(ages)),
        float(np.quantile(ages, 0.95)),
        int(ages.max(initial=0)),
        waited,
        now,
        refreshes,
    )


def _both_work(step: float, left: float, shared: bool) -> tuple[float, float]:
    """Time that a step takes while an index is being made, and the time that the index still needs alone afterwards."""
    if not shared:
        return step, left - step
    together = min(step, left)  # work of each that is done at half speed
    return 2 * together + (step - together), left - together


def _times(
    random: np.random.Generator, mean: float, spread: float, count: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if not spread or not mean:
        return np.full(count, mean)
    return random.gamma(1 / spread**2, mean * spread**2, count)


def devices_for_age(target: int, run: Refreshing, most: int = 65_536) -> int | None:
    """Return the number of refresher devices with which 95 % of the steps see an index of at most `target` steps.

    `run.embed_seconds` is the time on one device. It falls with the number of devices, and `build_seconds` does not. Returns None if
    even `most` devices are too few, as when the snapshots themselves are further apart.
    """
    periods = min(run.steps, 60 * run.every)

    def holds(devices: int) -> bool:
        some = replace(run, steps=periods, embed_seconds=run.embed_seconds / devices, shared=False, inline=False)
        return simulate(some).p95 <= target

    if not holds(most):
        return None
    low, high = 0, most  # `low` is too few, `high` is enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
