"""Training logs as arrays, one row a seed. R runs, S steps; NaN where a step logged no such number."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from results import Run

Curves = NDArray[np.float64]


def logged(runs: Sequence[Run], output: str, key: str) -> Curves:
    """`key` at each step, float64 [R, S]: the runs that logged it at all, S the longest of them."""
    points = [[(line["step"], line[key]) for line in run.steps(output) if line.get(key) is not None] for run in runs]
    found = [row for row in points if row]
    values_RS = np.full((len(found), max((row[-1][0] for row in found), default=0)), np.nan)
    for values_S, row in zip(values_RS, found, strict=True):
        for step, value in row:
            values_S[step - 1] = value
    return values_RS


def smoothed(values_RS: Curves, window: int) -> Curves:
    """Mean of the numbers among the `window` steps around each step, fewer at the ends; NaN where there is none."""
    ones = np.ones(min(window, values_RS.shape[1]))

    def summed(rows: Curves) -> Curves:
        return np.stack([np.convolve(row, ones, mode="same") for row in rows])

    if not values_RS.size:
        return values_RS
    there_RS = np.isfinite(values_RS)
    count_RS = summed(there_RS.astype(float))
    return np.where(count_RS > 0, summed(np.where(there_RS, values_RS, 0.0)) / np.maximum(count_RS, 1.0), np.nan)


def mean_over_runs(values_RS: Curves) -> Curves:
    """Float64 [S]: mean of the runs that have a number there, NaN where none has."""
    mean_S: Curves = np.ma.masked_invalid(values_RS).mean(axis=0).filled(np.nan)
    return mean_S
