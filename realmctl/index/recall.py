"""Recall@k of an index against exact search, on a fixed sample of queries.

Real queries are not known when an index is built, and blocks as queries are too easy. So half of the sample are rows of
the matrix, where the row itself does not count as an answer. The other half are rows moved in a random direction by half
their distance from the mean row; they resemble queries that are near a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.index.exact import ExactIndex
from realmctl.index.protocol import RowIds, Scores, Vectors
from realmctl.index.settings import IndexSettings

SearchFunction = Callable[[Vectors, int], tuple[Scores, RowIds]]
NOISE = 0.5
NONE = -1
TOLERANCE = 1e-5
"""Scores that differ by less than this, relative to the largest, count as equal, because sums are rounded."""


@dataclass(frozen=True)
class Recall:
    """Mean recall@k over the sampled queries, with its 95 % interval."""

    mean: float
    low: float
    high: float
    k: int
    queries: int

    def metrics(self) -> dict[str, float]:
        """As an index's metrics name it."""
        return {
            "recall": self.mean,
            "recall_low": self.low,
            "recall_high": self.high,
            "recall_k": self.k,
            "recall_queries": self.queries,
        }

    def __str__(self) -> str:
        return f"{self.mean:.1%} (95 % interval {self.low:.1%} to {self.high:.1%}, {self.queries} queries)"


class RecallSample:
    """A sample of queries and its exact answers. Computed once, it measures any number of indexes over the same vectors.

    Rows must be finite. `sample` queries are drawn with `seed`; fewer when there are fewer rows. `depths` are the numbers k
    of answers at which recall@k is measured: an index that finds the 8 best rows may miss half of the 100 best.
    """

    def __init__(self, vectors: Vectors, *, depths: Sequence[int], sample: int, seed: int, device: str = "cpu") -> None:
        self.depths = depths
        self.queries, self.own = sample_queries(vectors, sample, seed)
        self._best_SK, _ = _neighbours(ExactIndex(vectors, device).search, self.queries, self.own, max(depths))
        self._slack = TOLERANCE * np.abs(self._best_SK[np.isfinite(self._best_SK)]).max(initial=0.0)

    @classmethod
    def of(cls, settings: IndexSettings, vectors: Vectors, device: str) -> RecallSample:
        """The sample that the settings of an index name."""
        return cls(vectors, depths=settings.recall_k, sample=settings.recall_sample, seed=settings.seed, device=device)

    def measure(self, search: SearchFunction) -> Recall:
        """Return the recall of a search at the depth where it is lowest."""
        return min((self._at(depth, search) for depth in self.depths), key=lambda recall: recall.mean)

    def _at(self, k: int, search: SearchFunction) -> Recall:
        """A result counts if it scores at least as high as the true k-th best."""
        best_SK = self._best_SK[:, :k]
        wanted = np.isfinite(best_SK).sum(axis=1)
        scores, _ = _neighbours(search, self.queries, self.own, k)
        found = (np.isfinite(scores) & (scores >= best_SK.min(axis=1, keepdims=True) - self._slack)).sum(axis=1)
        mean = float(np.where(wanted == 0, 1.0, np.minimum(found / np.maximum(wanted, 1), 1.0)).mean())
        low, high = wilson(mean, len(self.queries))
        return Recall(mean, low, high, k, len(self.queries))


def sample_queries(vectors: Vectors, size: int, seed: int) -> tuple[NDArray[np.float32], RowIds]:
    """Return queries [S, D] and, for each, the row that does not count as an answer, or -1; S = min(size, n).

    Unmoved rows come before moved rows.
    """
    random = np.random.default_rng(seed)
    ids = random.choice(len(vectors), size=min(size, len(vectors)), replace=False).astype(np.int64)
    queries = np.array(vectors[ids], dtype=np.float32)
    moved = np.arange(len(ids)) >= (len(ids) + 1) // 2
    distance = np.linalg.norm(queries - queries.mean(axis=0), axis=1, keepdims=True)
    direction = random.standard_normal(queries.shape, dtype=np.float32)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    queries[moved] += NOISE * (distance * direction)[moved]
    return queries, np.where(moved, NONE, ids)


def wilson(share: float, trials: int) -> tuple[float, float]:
    """95 % score interval (Wilson 1927) of a mean of `trials` values in [0, 1]."""
    z2 = 1.96**2
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = math.sqrt(z2 * (share * (1 - share) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    return max(0.0, middle - half), min(1.0, middle + half)


def _neighbours(search: SearchFunction, queries: NDArray[np.float32], own: RowIds, k: int) -> tuple[Scores, RowIds]:
    """Return scores and ids of the k best rows other than `own` (-1: none is left out). Empty places score -inf."""
    scores, ids = search(queries, k + 1)
    scores = np.where(ids == own[:, None], -np.inf, scores)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)
