"""The difference of two runs over the same queries, with its interval: a paired bootstrap.

Queries are drawn with replacement, and each draw has the mean difference of its queries. The interval is that from the 2.5th to the 97.5th percentile of
the draws (Efron and Tibshirani 1993, chapter 13; for rankings Sakai 2006). Of several collections, queries are drawn within each, and the mean is
the mean of the collections' means. The draws have a fixed seed. Legend: Q queries of a collection, B draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS, FEWEST_DRAWS, IN_ALL = 10_000, 2000, 10**8
"""Draws, and of so many queries that more than these would be drawn in all fewer draws."""
AT_ONCE = 2**21
"""Queries that are drawn together, so that memory stays small."""
FEWEST = 10
"""Of fewer queries the interval would be too narrow, so there is none."""
EQUAL = 1e-9
"""Values closer than this are equal: sums of floats that differ in their order."""


@dataclass(frozen=True)
class Paired:
    """The means of a run and its baseline, their difference with its 95 % interval (None of fewer than `FEWEST` queries), and who won how many queries."""

    mean: float
    base: float
    difference: float
    low: float | None
    high: float | None
    wins: int
    losses: int
    equal: int

    @property
    def shown_below(self) -> bool:
        """Whether the whole interval lies below 0."""
        return self.high is not None and self.high < 0


def paired(own: Sequence[NDArray[np.float64]], base: Sequence[NDArray[np.float64]], draws: int = 0) -> Paired:
    """Compare values of the same queries, one array of float64 [Q] for each collection. No array is empty. draws: 0 for as many as usual."""
    differences = [one - two for one, two in zip(own, base, strict=True)]
    every = np.concatenate(differences)
    low = high = None
    if len(every) >= FEWEST:
        rng, draws = np.random.default_rng(0), draws or max(FEWEST_DRAWS, min(DRAWS, IN_ALL // len(every)))
        mean_B = np.mean([_means(each_Q, draws, rng) for each_Q in differences], axis=0)
        low, high = (float(end) for end in np.quantile(mean_B, (0.025, 0.975)))
    wins, losses = int((every > EQUAL).sum()), int((every < -EQUAL).sum())
    mean, of_base, difference = (float(np.mean([each.mean() for each in some])) for some in (own, base, differences))
    return Paired(mean, of_base, difference, low, high, wins, losses, len(every) - wins - losses)


def _means(difference_Q: NDArray[np.float64], draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The mean of each draw, float64 [B]."""
    count = len(difference_Q)
    step = max(1, AT_ONCE // count)
    sizes = [min(step, draws - begun) for begun in range(0, draws, step)]
    return np.concatenate([difference_Q[rng.integers(count, size=(size, count))].mean(1) for size in sizes])
