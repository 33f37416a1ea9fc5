"""Read metrics.jsonl of a training run as curves, and shorten them for drawing."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.artifacts.arrays import evenly_spaced
from realmctl.errors import InputError

METRICS = "metrics.jsonl"
AGE, WAIT, ALARMS = "index_age_steps", "index_wait_seconds", "alarms"
SMOOTHED_OVER = 20
"""A smoothed curve is a running mean over one part in this many of the run."""


@dataclass(frozen=True)
class Curve:
    """Finite values of one metric and their steps, both float64 [n]; steps ascend."""

    step: NDArray[np.float64]
    value: NDArray[np.float64]

    def thinned(self, most: int = 600) -> Curve:
        """Return a curve of at most `most` points: the lowest and highest of each interval, so that peaks stay visible."""
        if len(self.step) <= most:
            return self
        stretches = np.array_split(np.arange(len(self.step)), max(1, most // 2))
        ends = [{int(part[self.value[part].argmin()]), int(part[self.value[part].argmax()])} for part in stretches]
        kept = sorted(set().union(*ends))
        return Curve(self.step[kept], self.value[kept])

    def smoothed(self, most: int = 300) -> Curve | None:
        """Return the running mean over a twentieth of the points, at no more than `most` steps; None for a short curve."""
        count = len(self.step)
        width = count // SMOOTHED_OVER
        if width < 2:
            return None
        places = evenly_spaced(count, most)
        total = np.concatenate([[0.0], np.cumsum(self.value)])
        first, stop = np.maximum(0, places - width // 2), np.minimum(count, places - width // 2 + width)
        return Curve(self.step[places], (total[stop] - total[first]) / (stop - first))


@dataclass(frozen=True)
class TrainingRun:
    """The log of one training run: a curve for each metric, and its alarms as (step, message)."""

    artifact: Artifact
    curves: Mapping[str, Curve]
    alarms: list[tuple[int, str]]

    @cached_property
    def refreshes(self) -> list[tuple[int, int]]:
        """For every index refresh: the step of its snapshot, and the first step that searched the new index."""
        if AGE not in self.curves:
            return []
        age = self.curves[AGE]
        made = [(round(step - 1 - old), round(step - 1)) for step, old in zip(age.step, age.value, strict=True)]
        return [after for before, after in itertools.pairwise(made) if after[0] > before[0]]

    @property
    def waited(self) -> tuple[int, float]:
        """The number of steps that waited for a fresher index, and the seconds waited in total."""
        waits = self.curves.get(WAIT)
        return (len(waits.value), float(waits.value.sum())) if waits else (0, 0.0)


def read_run(artifact: Artifact) -> TrainingRun:
    """Read the curves of a training artifact. Raises InputError that names an invalid line."""
    points: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    alarms: list[tuple[int, str]] = []
    path = artifact.file(METRICS)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                step = int(record.pop("step"))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise InputError(
                    f"{path}:{number}: the line does not hold the metrics of a step ({error!r}). Make {artifact} again."
                ) from None
            alarms += [(step, what) for what in _alarms(record.pop(ALARMS, None))]
            for name, value in record.items():
                if type(value) in (int, float) and math.isfinite(value):
                    points[name].append((step, value))
    return TrainingRun(artifact, {name: _curve(found) for name, found in points.items()}, alarms)


def _curve(points: list[tuple[float, float]]) -> Curve:
    table = np.array(points, dtype=np.float64)
    return Curve(table[:, 0], table[:, 1])


def _alarms(value: object) -> list[str]:
    """Return one or several alarms as texts."""
    found = value if isinstance(value, list) else [] if value in (None, False, 0, "") else [value]
    return [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in found]
