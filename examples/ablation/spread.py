"""Numbers of several seeds: mean, standard deviation, paired differences with their interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from scipy.stats import t as student

BySeed = Mapping[int, float]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """`sd`: sample standard deviation (n - 1); None for a single value."""

    n: int
    mean: float
    sd: float | None


@dataclass(frozen=True)
class Difference:
    """First minus second over the `n` seeds that have both; `low` to `high` holds the true mean at 95 %.

    Student's t with n - 1 degrees of freedom, so the seeds' differences are taken to be normal; None for one seed.
    """

    n: int
    mean: float
    low: float | None
    high: float | None
    positive: int  # seeds on which it is > 0


def spread(values: BySeed) -> Spread | None:
    """None for no value at all."""
    if not values:
        return None
    return Spread(len(values), fmean(values.values()), stdev(values.values()) if len(values) > 1 else None)


def difference(first: BySeed, second: BySeed) -> Difference | None:
    """Paired by seed; None where no seed has both."""
    pairs = {seed: first[seed] - second[seed] for seed in first.keys() & second.keys()}
    over = spread(pairs)
    if over is None:
        return None
    positive = sum(value > 0 for value in pairs.values())
    if over.sd is None:
        return Difference(over.n, over.mean, None, None, positive)
    half = float(student.ppf((1 + CONFIDENCE) / 2, over.n - 1)) * over.sd / sqrt(over.n)
    return Difference(over.n, over.mean, over.mean - half, over.mean + half, positive)
