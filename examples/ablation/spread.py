"""Statistics over seeds: mean, standard deviation, and paired differences with their interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from scipy.stats import t as student

BySeed = Mapping[int, float]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """Mean over seeds. `sd` is the sample standard deviation (n - 1); None for a single value."""

    n: int
    mean: float
    sd: float | None


@dataclass(frozen=True)
class Difference:
    """First minus second over the `n` seeds that have both.

    `low` to `high` is the 95 % confidence interval of the mean.

    The interval is Student's t with n - 1 degrees of freedom, which assumes normal differences; None for one seed.
    """

    n: int
    mean: float
    low: float | None
    high: float | None
    positive: int  # number of seeds with a difference above 0
    negative: int  # number of seeds with a difference below 0


def spread(values: BySeed) -> Spread | None:
    """Return the mean and spread of the values, or None if there are none."""
    if not values:
        return None
    return Spread(len(values), fmean(values.values()), stdev(values.values()) if len(values) > 1 else None)


def difference(first: BySeed, second: BySeed) -> Difference | None:
    """Return the difference, paired by seed, or None if no seed has both."""
    pairs = {seed: first[seed] - second[seed] for seed in first.keys() & second.keys()}
    over = spread(pairs)
    if over is None:
        return None
    signs = sum(value > 0 for value in pairs.values()), sum(value < 0 for value in pairs.values())
    if over.sd is None:
        return Difference(over.n, over.mean, None, None, *signs)
    half = float(student.ppf((1 + CONFIDENCE) / 2, over.n - 1)) * over.sd / sqrt(over.n)
    return Difference(over.n, over.mean, over.mean - half, over.mean + half, *signs)
