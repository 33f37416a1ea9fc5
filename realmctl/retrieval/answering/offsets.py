"""Wordpieces of a block and their character offsets, with which answers are located and cut out of the text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus
from realmctl.errors import MismatchError
from realmctl.tokens.tokenizer import Tokenizer


def char_offsets(corpus: Corpus, wordpiece: Tokenizer, row: int) -> NDArray[np.int32]:
    """Character offsets (start, end) of each wordpiece of a block's body in the block's text, int32 [n, 2].

    The text is tokenised sentence by sentence, as `chunk` did it. Raises MismatchError when `wordpiece` is not the
    tokenizer of the blocks.
    """
    block = corpus.block(row)
    encoded = wordpiece.encode_batch(block.sentence_texts())
    parts = [offsets + start for (_, offsets), (start, _) in zip(encoded, block.sentences, strict=True)]
    offsets: NDArray[np.int32] = np.concatenate(parts)
    if len(offsets) != len(corpus.tokens(row)):
        raise MismatchError(
            f"Block {block.id} of {corpus.artifact} has {len(corpus.tokens(row))} wordpieces, but its text gives {len(offsets)}: "
            "the blocks were not made with the tokenizer in their artifact. Chunk the corpus again."
        )
    return offsets


def covered(offsets: NDArray[np.int32], spans: Iterable[tuple[int, int]], widest: int) -> list[tuple[int, int]]:
    """The runs of at most `widest` wordpieces that lie within character spans, as (first, last), sorted, each once.

    Of a span in which no wordpiece lies, those that it touches: 서울 has the wordpiece 서울은.
    """
    found = set()
    for start, end in spans:
        within = np.flatnonzero((offsets[:, 0] >= start) & (offsets[:, 1] <= end))
        if not len(within):
            within = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > start))
        if 0 < len(within) <= widest:
            found.add((int(within[0]), int(within[-1])))
    return sorted(found)
