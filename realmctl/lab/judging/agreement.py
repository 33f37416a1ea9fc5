"""How far two judges agree: Cohen's kappa, also with quadratic weights, and its interval.

Kappa is the share of agreement beyond that of two judges who draw grades at random, each as often as it gives them (Cohen 1960). With quadratic weights a difference of two
grades counts four times that of one (Cohen 1968). Grades of one query depend on each other, so the bootstrap draws queries. Legend: Q queries, G grades, B draws.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
Counts = NDArray[np.float64]
"""How often one judge gave a grade (row) and the other another one (column): float64 [..., G, G]."""


def counts_of(pairs: Iterable[tuple[str, int, int]], grades: int) -> Counts:
    """Return the counts of each query, float64 [Q, G, G]. pairs: query, and the grades of both judges, from 0."""
    found: dict[str, Counts] = {}
    for query, one, two in pairs:
        found.setdefault(query, np.zeros((grades, grades)))[one, two] += 1
    return np.array([*found.values()]).reshape(-1, grades, grades)


def kappa(counts: Counts, weighted: bool = False) -> NDArray[np.float64]:
    """Return kappa of counts [..., G, G]; NaN where both judges give one and the same grade alone."""
    grade_G = np.arange(counts.shape[-1])
    weight_GG = (grade_G[:, None] - grade_G) ** 2.0
    if not weighted:
        weight_GG = np.sign(weight_GG)
    expected = counts.sum(-1)[..., :, None] * counts.sum(-2)[..., None, :]
    total = counts.sum((-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = 1 - total * (weight_GG * counts).sum((-2, -1)) / (weight_GG * expected).sum(
            (-2, -1)
        )
    return found


def agreement(pairs: Iterable[tuple[str, int, int]], grades: int) -> dict[str, object]:
    """Return `pairs`, `same`, the share of equal grades, `kappa` and `weighted_kappa` with 95 % intervals, and `counts`.

    A kappa that does not exist is left out, and so is an interval of which a tenth of the draws have none.
    """
    count_QGG = counts_of(pairs, grades)
    count_GG = count_QGG.sum(0)
    total = float(count_GG.sum())
    found: dict[str, object] = {"pairs": int(total)}
    if not total:
        return found
    found |= {"same": round(float(np.trace(count_GG)) / total, 6), "counts": count_GG.astype(int).tolist()}
    rng = np.random.default_rng(0)
    times_BQ = rng.multinomial(len(count_QGG), np.full(len(count_QGG), 1 / len(count_QGG)), size=DRAWS)
    drawn_BGG = np.tensordot(times_BQ.astype(float), count_QGG, 1)
    for name, weighted in (("kappa", False), ("weighted_kappa", True)):
        value, value_B = float(kappa(count_GG, weighted)), kappa(drawn_BGG, weighted)
        if not np.isfinite(value):
            continue
        found[name] = round(value, 6)
        known_B = value_B[np.isfinite(value_B)]
        if len(count_QGG) > 1 and len(known_B) >= 0.9 * DRAWS:
            low, high = np.quantile(known_B, (0.025, 0.975))
            found |= {f"{name}_low": round(float(low), 6), f"{name}_high": round(float(high), 6)}
    return found
