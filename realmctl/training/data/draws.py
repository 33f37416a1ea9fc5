"""Random draws: each purpose draws from a stream of its own, addressed by seed and step.

A draw depends on the seed, the stream and the step alone, so a resumed run draws what an undisturbed run draws.
The order of the data is one more stream, addressed by seed and epoch (`order.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from realmctl.execution import processes
from realmctl.spans.query import Query, from_numbers, to_numbers
from realmctl.training import data_parallel


class Stream(IntEnum):
    """The purposes of random draws.

    Results depend on the numbers, so they never change. A new purpose gets the next free number. 8 and 13 belonged to methods that left.
    """

    ICT_SENTENCES = 1  # sentence of a block, whether it is removed from the block
    MLM_MASKS = 2  # masked positions and pairs
    QUERY_MASKS = 3  # masks of pre-training queries; answers of closed-book questions
    FIXED_QUERIES = 4  # queries that are watched through a run; masks of `eval-utility`
    SPAN_DRAWS = 5  # spans of a block under `--official span-draws`
    SAMPLED_BLOCKS = 6  # blocks that a start in closed form is fitted to
    RECURRING_SPANS = 7  # span of a document, its blocks, the query's window
    LABELLED_PASSAGES = 9  # positive and hard negatives of a question
    CLOZE_QUESTIONS = 10  # sentences, spans and words of cloze questions
    DECODER_MASKS = 11  # what each position of a RetroMAE decoder may not read
    CLOZE_RECALL = 12  # sentences cut out of blocks to measure retrieval, and the blocks among which they search
    CLOZE_TITLES = 14  # titles that are asked for, and the blocks among which they search
    HELD_OUT = 15  # the blocks among which questions of held-out documents search


def generator(seed: int, stream: Stream, step: int | None = None) -> np.random.Generator:
    """Return the generator of one stream for one step, or for the whole run if no step is given."""
    return np.random.default_rng([seed, int(stream)] if step is None else [seed, step, int(stream)])


class SharedDraws:
    """The queries of the whole batch of each step, where they depend on one random stream for the whole batch.

    Drawing an example advances the random stream by an amount that only the draw itself knows, so nobody can draw its own part
    of a batch alone. Instead each of N processes draws one of N steps in a row, and they exchange what they drew. A process
    does a share of the work, and the examples are those that one process draws.

    Args:
        draw: Returns the batch of a step. It must depend on the step alone.
    """

    def __init__(self, draw: Callable[[int], list[Query]]) -> None:
        self._draw = draw
        self._drawn: dict[int, list[Query]] = {}

    def of(self, step: int) -> list[Query]:
        """Return the batch of a step. All processes must ask for the same step."""
        if processes.world_size() == 1:
            return self._draw(step)
        if step not in self._drawn:
            own = to_numbers(self._draw(step + processes.rank()))
            self._drawn = dict(enumerate(map(from_numbers, data_parallel.gather_rows(own)), step))
        return self._drawn[step]
