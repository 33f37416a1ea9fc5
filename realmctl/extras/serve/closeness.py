"""Whether a search found anything close, which scores alone do not say: they differ between encoders, and between fields.

So each corpus sets its own measure. Words that are drawn from all over it make queries that mean nothing, but in the field's own words. A query whose
best block is less similar than those of a quarter of these is about something else, unless the block has half of its words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from realmctl.extras.serve.marks import WITHOUT_BLANKS, WORD, Marks
from realmctl.retrieval.search.block_search import BlockSearch, Hit

DRAWN, WORDS = 64, 6
"""Queries that mean nothing, and the words of each."""
SHARE = 25
"""Per cent of these whose best block is less similar than that of a query that finds nothing close."""
FEWEST_BLOCKS = 100
"""Fewer blocks say little about what a field's words are."""
LONGEST = 4
"""Characters of a word where no blanks part words."""


class Closeness:
    """What is close in the blocks of a searcher whose scores compare queries, as those of a sentence encoder do."""

    def __init__(self, dense: BlockSearch) -> None:
        self.dense, draw = dense, np.random.default_rng(0)
        self.least = -np.inf
        if len(dense.corpus) < FEWEST_BLOCKS:
            return
        queries = []
        for _ in range(DRAWN):
            texts = [dense.corpus.block(int(row)).text for row in draw.integers(0, len(dense.corpus), WORDS)]
            words = [draw.choice(found) for text in texts if (found := WORD.findall(text))]
            queries.append(" ".join(word[:LONGEST] if WITHOUT_BLANKS.search(word) else word for word in words) or "?")
        self.least = float(np.percentile(self._best(queries), SHARE))

    def _best(self, queries: Sequence[str]) -> list[float]:
        """The score of each query's best block."""
        return [
            float(score) for part in range(0, len(queries), 16) for score in self._scores(queries[part : part + 16])
        ]

    def _scores(self, queries: Sequence[str]) -> list[float]:
        scores, _ = self.dense.nearest(self.dense.tokens(queries), 1)
        return [*map(float, scores[:, 0])]

    def nothing_close(
        self, queries: Sequence[str], hits: Sequence[Sequence[Hit]], marks: Marks, by_itself: bool
    ) -> list[bool]:
        """For each query with its hits, whether nothing close was found. by_itself: the hits are those of the encoder alone."""
        best = [own[0].score for own in hits] if by_itself else self._best(queries)
        return [
            score < self.least and not (found and marks.share(query, found[0].block.text) >= 0.5)
            for query, score, found in zip(queries, best, hits, strict=True)
        ]
