"""The salient spans that a step of pre-training hides: all of them in turn, or drawn as in the official code."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from realmctl.deviations import PretrainDeviation
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.training.data_order import DataOrder, ShardedDataOrder
from realmctl.training.random_streams import Stream, generator


class SpanOrder(Protocol):
    """The order in which salient spans are hidden."""

    def batch(self, step: int) -> NDArray[np.int64]:
        """Numbers of the spans of a step, int64 [batch_size]."""
        ...


def span_order(
    queries: TaggedQueries, batch_size: int, seed: int, official: Collection[PretrainDeviation]
) -> SpanOrder:
    """Passes over all spans. `shards` passes over shards of them, `span-draws` over blocks instead of spans."""
    order = ShardedDataOrder if "shards" in official else DataOrder
    if "span-draws" not in official:
        return order(len(queries.spans), batch_size, seed)
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
