"""Blocks as what a language model goes on with: the first part is the query, and the second part is hidden.

So REPLUG splits passages (Shi et al. 2023, section 5.1). No salient span is needed, and any block of two sentences serves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.spans.masking import Masking
from realmctl.spans.query import HiddenText, Query
from realmctl.tokens.frame import AROUND_ONE


class HalvedBlocks:
    """Blocks of two or more sentences, cut at the sentence that begins nearest to their middle.

    count: number of such blocks. uid: uid of every block of the corpus. Raises InputError when there is none.
    """

    def __init__(self, corpus: Corpus, query_length: int) -> None:
        self.corpus, self.query_length = corpus, query_length
        self.rows: NDArray[np.int64] = np.flatnonzero(np.diff(corpus.sentence_offsets) > 1)
        self.count, self.uid = len(self.rows), corpus.uid
        self.own_uid = self.uid
        if not self.count:
            raise InputError(
                f"No block of {corpus.artifact} has two sentences, so none has a second part to hide. Chunk longer blocks."
            )

    def _second_part(self, row: int) -> tuple[int, int]:
        """The number of the sentence that a block is cut at, and its first wordpiece."""
        start_S = np.asarray(self.corpus.sentences(row), dtype=np.int64)[1:]
        number = int(np.abs(start_S - self.corpus.lengths[row] / 2).argmin())
        return 1 + number, int(start_S[number])

    def query(self, number: int, mask_id: int, masking: Masking, rng: np.random.Generator) -> Query:
        """Return the first part of block `number` as a query without masks, cut at its start to `query_length`. Nothing is drawn."""
        row = int(self.rows[number])
        tokens = np.asarray(self.corpus.tokens(row)[: self._second_part(row)[1]], dtype=np.int64)
        nothing = np.empty(0, dtype=np.int64)
        return Query(tokens[max(0, len(tokens) - self.query_length + AROUND_ONE) :], nothing, nothing, row)

    def text(self, query: Query) -> HiddenText:
        """Return the block of a query as text whose second part is hidden."""
        block = self.corpus.block(query.sentence)
        start, _ = block.sentences[self._second_part(query.sentence)[0]]
        return HiddenText.of(block.text, start, len(block.text))
