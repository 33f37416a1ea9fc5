"""Training logs as arrays with a row for each seed: R runs, S steps. NaN marks a step that did not log the number."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from results import Run

Curves = NDArray[np.float64]


def logged(runs: Sequence[Run], output: str, key: str) -> Curves:
    """Return `key` at each step, float64 [R, S], of the runs that logged it. S is the length of the longest run."""
    points = [[(line["step"], line[key]) for line in run.steps(output) if line.get(key) is not None] for run in runs]
    found = [row for row in points if row]
    values_RS = np.full((len(found), max((row[-1][0] for row in found), default=0)), np.nan)
    for values_S, row in zip(values_RS, found, strict=True):
        for step, value in row:
            values_S[step - 1] = value
    return values_RS


def smoothed(values_RS: Curves, window: int) -> Curves:
    """Return the mean of the numbers in a window of `window` steps around each step; NaN if the window has none."""
    ones = np.ones(min(window, values_RS.shape[1]))

    def summed(rows: Curves) -> Curves:
        return np.stack([np.convolve(row, ones, mode="same") for row in rows])

    if not values_RS.size:
        return values_RS
    there_RS = np.isfinite(values_RS)
    count_RS = summed(there_RS.astype(float))
    return np.where(count_RS > 0, summed(np.where(there_RS, values_RS, 0.0)) / np.maximum(count_RS, 1.0), np.nan)


def mean_over_runs(values_RS: Curves) -> Curves:
    """Return the mean over the runs with a number at a step, float64 [S]; NaN if no run has one."""
    mean_S: Curves = np.ma.masked_invalid(values_RS).mean(axis=0).filled(np.nan)
    return mean_S
