"""How much two artifacts of one recipe differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from realmctl.artifacts import Artifact

WEIGHT_TOLERANCE = (2e-4, 1e-3)
"""Absolute and relative difference of weights and vectors that may come from another order of sums."""
METRIC_TOLERANCE = (2e-5, 2e-4)
"""The same of metrics, such as the loss of a step."""
NOT_COMPARED = ("alarms",)


@dataclass(frozen=True)
class Difference:
    """What two artifacts differ in.

    Attributes:
        same_bytes: Whether all files are the same.
        weight: Largest difference of a weight or a number of a vector.
        metric: Largest difference of a metric of a step.
        where: The weights and metrics that are not close.
        close: Whether everything is within the tolerances.
    """

    same_bytes: bool
    weight: float = 0.0
    metric: float = 0.0
    close: bool = True
    where: tuple[str, ...] = ()


def difference(one: Artifact, other: Artifact) -> Difference:
    """Compare the files of two artifacts: weights, vectors and the metrics of the steps."""
    if one.content == other.content:
        return Difference(True)
    weights, metrics = _Largest(*WEIGHT_TOLERANCE), _Largest(*METRIC_TOLERANCE)
    left, right = _tensors(one.path), _tensors(other.path)
    lines, expected = _metrics(one.path), _metrics(other.path)
    close = one.recipe == other.recipe and left.keys() == right.keys() and len(lines) == len(expected)
    for name in left.keys() & right.keys():
        weights.add(name, left[name], right[name])
    for mine, theirs in zip(lines, expected, strict=False):
        close = close and mine.keys() == theirs.keys()
        for name in mine.keys() & theirs.keys():
            metrics.add(name, torch.tensor(float(mine[name])), torch.tensor(float(theirs[name])))
    something = bool(left or lines)
    where = (*weights.far, *metrics.far)
    return Difference(False, weights.difference, metrics.difference, close and something and not where, where)


class _Largest:
    """The largest difference so far, and what was not within `absolute` + `relative` times the size."""

    def __init__(self, absolute: float, relative: float) -> None:
        self.absolute, self.relative = absolute, relative
        self.difference, self.far = 0.0, dict[str, None]()

    def add(self, name: str, one: torch.Tensor, other: torch.Tensor) -> None:
        if one.shape != other.shape:
            self.difference, self.far[name] = math.inf, None
            return
        if not one.numel():
            return
        gap = (one.double() - other.double()).abs()
        self.difference = max(self.difference, float(gap.max()))
        if not bool((gap <= self.absolute + self.relative * other.double().abs()).all()):
            self.far[name] = None


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    """{file and name: tensor} of the weights and vectors below a folder."""
    found: dict[str, torch.Tensor] = {}
    for file in sorted(folder.rglob("*.safetensors")):
        found |= {f"{file.relative_to(folder)} {name}": tensor for name, tensor in load_file(file).items()}
    for file in sorted(folder.rglob("*.npy")):
        array = np.load(file, allow_pickle=False)
        if array.dtype.kind == "f":
            found[str(file.relative_to(folder))] = torch.from_numpy(array)
    return found


def _metrics(folder: Path) -> list[Mapping[str, Any]]:
    """The numbers of each step."""
    return list(_lines(folder / "metrics.jsonl")) if (folder / "metrics.jsonl").is_file() else []


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield {
            name: value for name, value in json.loads(line).items() if name not in NOT_COMPARED and value is not None
        }
