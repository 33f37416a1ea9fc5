"""The random streams of training: each purpose draws from a stream of its own, addressed by seed and step.

A draw depends on the seed, the stream and the step alone, so a resumed run draws what an undisturbed run draws.
The order of the data is one more stream, addressed by seed and epoch (`data_order.py`).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """The purposes of random draws.

    Results depend on the numbers, so they never change. A new purpose gets the next free number.
    """

    ICT_SENTENCES = 1  # sentence of a block, whether it is removed from the block
    MLM_MASKS = 2  # masked positions and pairs
    QUERY_MASKS = 3  # masks of pre-training queries; answers of closed-book questions
    FIXED_QUERIES = 4  # queries that are watched through a run; masks of `eval-utility`
    SPAN_DRAWS = 5  # spans of a block under `--official span-draws`
    SAMPLED_BLOCKS = 6  # blocks that a start in closed form is fitted to
    RECURRING_SPANS = 7  # span of a document, its blocks, the query's window
    HARD_EM = 8  # whether a step of fine-tuning learns from the likeliest mention alone
    LABELLED_PASSAGES = 9  # positive and hard negatives of a question
    CLOZE_QUESTIONS = 10  # sentences, spans and words of cloze questions


def generator(seed: int, stream: Stream, step: int | None = None) -> np.random.Generator:
    """Return the generator of one stream for one step, or for the whole run if no step is given."""
    return np.random.default_rng([seed, int(stream)] if step is None else [seed, step, int(stream)])
