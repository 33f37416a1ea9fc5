"""Which examples each step has. It depends on seed and step alone, so a checkpoint need not record it."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from realmctl.deviations import PretrainDeviation
from realmctl.spans.tagged_queries import Queries, TaggedQueries
from realmctl.training.data.draws import Stream, generator

SHARDS, SHARDS_OF_A_ROUND = 5000, 4
"""Files that a corpus is cut into, a number of ours, and files of a round, the official code's number."""


class DataOrder:
    """Endless passes over `count` examples, each pass a new permutation, cut into batches of `batch_size`."""

    def __init__(self, count: int, batch_size: int, seed: int) -> None:
        self.count, self.batch_size, self.seed = count, batch_size, seed
        self._pass = lru_cache(maxsize=2)(self._permutation)

    def batch(self, step: int) -> NDArray[np.int64]:
        """Return the examples of a step, int64 [batch_size]. A batch may begin in one pass and end in the next."""
        places = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        return np.array([self._pass(int(place // self.count))[place % self.count] for place in places], dtype=np.int64)

    def _permutation(self, number: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, number]).permutation(self.count)


class ThinnedDataOrder(DataOrder):
    """Endless passes over all of the first `count` examples and a share of the `thinned` ones that follow them.

    Each pass draws its share anew, rounded to a whole number of examples.
    """

    def __init__(self, count: int, thinned: int, share: float, batch_size: int, seed: int) -> None:
        self._first, self._thinned, self._kept = count, thinned, round(share * thinned)
        super().__init__(count + self._kept, batch_size, seed)

    def _permutation(self, number: int) -> NDArray[np.int64]:
        rng = np.random.default_rng([self.seed, number])
        kept = self._first + rng.choice(self._thinned, self._kept, replace=False)
        return rng.permutation(np.concatenate([np.arange(self._first), kept]))


class ShardedDataOrder(DataOrder):
    """Endless rounds, each over 4 shards drawn from 5,000 shards of consecutive examples.

    The official code reads its files like this (google-research/language, realm/example_generator.py). Every round is as long
    as 4 of the smaller shards. The examples beyond that length are left out of the round.
    """

    def __init__(self, count: int, batch_size: int, seed: int) -> None:
        self._shards = np.array_split(np.arange(count), min(SHARDS, count))
        self._drawn = min(SHARDS_OF_A_ROUND, count)
        super().__init__(self._drawn * len(self._shards[-1]), batch_size, seed)

    def _permutation(self, number: int) -> NDArray[np.int64]:
        rng = np.random.default_rng([self.seed, number])
        chosen = rng.choice(len(self._shards), self._drawn, replace=False)
        return rng.permutation(np.concatenate([self._shards[shard] for shard in chosen]))[: self.count]


class MixedDataOrder:
    """Batches with a fixed number of examples from each of two orders. The second order's examples follow the first's."""

    def __init__(self, first: DataOrder, second: DataOrder) -> None:
        self.first, self.second = first, second

    def batch(self, step: int) -> NDArray[np.int64]:
        """Return the examples of a step, int64 [batch sizes of both orders]."""
        return np.concatenate([self.first.batch(step), self.first.count + self.second.batch(step)])


class SpanOrder(Protocol):
    """The order in which salient spans are hidden."""

    def batch(self, step: int) -> NDArray[np.int64]:
        """Numbers of the spans of a step, int64 [batch_size]."""
        ...


def span_order(queries: Queries, batch_size: int, seed: int, official: Collection[PretrainDeviation]) -> SpanOrder:
    """Passes over all queries. `shards` passes over shards of them, `span-draws` over blocks instead of spans."""
    order = ShardedDataOrder if "shards" in official else DataOrder
    if "span-draws" not in official or not isinstance(queries, TaggedQueries):
        return order(queries.count, batch_size, seed)
    first = first_spans(queries)
    return SpanDraws(order(len(first), batch_size, seed), first, len(queries.spans), seed)


def first_spans(queries: TaggedQueries) -> NDArray[np.int64]:
    """Number of the first span of each block with spans, int64 [blocks]. A block's spans end where the next block's begin."""
    uid = queries.uid[queries.spans[:, 0]]
    return np.flatnonzero(np.concatenate([[True], uid[1:] != uid[:-1]]))


class SpanDraws:
    """Blocks in their order, with one span drawn uniformly from each (google-research realm/example_generator.py)."""

    def __init__(self, order: DataOrder, first: NDArray[np.int64], count: int, seed: int) -> None:
        self.order, self.first, self.seed = order, first, seed
        self.spans = np.diff(first, append=count)

    def batch(self, step: int) -> NDArray[np.int64]:
        """Numbers of the spans of a step, int64 [batch_size]."""
        blocks = self.order.batch(step)
        return self.first[blocks] + generator(self.seed, Stream.SPAN_DRAWS, step).integers(self.spans[blocks])
