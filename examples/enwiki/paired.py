"""Differences between two systems that answered the same questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating] | NDArray[np.bool_]
STANDARD_ERRORS = 1.96
"""Half the width of a 95 % interval of a normal distribution, in standard errors."""


@dataclass(frozen=True)
class Paired:
    """Mean difference of two systems, first minus second, with its 95 % interval over questions.

    `above` of the `seeds` have a mean difference above 0.
    """

    mean: float
    low: float
    high: float
    above: int
    seeds: int


def paired(first: Mapping[int, Scores], second: Mapping[int, Scores]) -> Paired | None:
    """Compare systems by seed and question; None if no seed has both.

    The difference of a question is its mean over the seeds. The interval is normal, over the questions. It says what other
    questions could change, and not what other seeds could.

    Args:
        first: {seed: scores of the questions, [questions]}.
        second: the same of the other system.
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    difference_SQ = np.stack([first[seed].astype(float) - second[seed].astype(float) for seed in seeds])
    difference_Q = difference_SQ.mean(0)
    mean = float(difference_Q.mean())
    half = STANDARD_ERRORS * float(difference_Q.std(ddof=1)) / sqrt(len(difference_Q))
    return Paired(mean, mean - half, mean + half, int((difference_SQ.mean(1) > 0).sum()), len(seeds))
