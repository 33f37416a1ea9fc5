"""Rank blocks, or documents, for queries: with one searcher, or with several whose rankings are fused.

A document's place is that of its best block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus
from realmctl.index.protocol import RowIds, Scores
from realmctl.questions.questions import Question
from realmctl.retrieval.search.fusion import RRF_K, reciprocal_rank_fusion
from realmctl.retrieval.search.searcher import Searcher

RankedUnit = Literal["block", "document"]
QUERIES_AT_ONCE = 512
"""Queries whose blocks are looked up together. Each frame of records is then read once for all of them."""


@dataclass(frozen=True)
class RankedQuery:
    """A query with the ids of its blocks or documents, best first, and their scores, float32 [n], which do not rise."""

    query: Question
    names: list[str]
    scores: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """Ranks blocks or documents.

    searchers: one, or several whose rankings are fused. top: number of blocks or documents of a query.
    depth: number of blocks that each searcher retrieves. unit: what is ranked. rrf_k: constant of the fusion.
    """

    searchers: Sequence[Searcher]
    top: int
    depth: int
    unit: RankedUnit = "block"
    rrf_k: float = RRF_K
    batch_size: int = 16

    def rank(
        self, queries: Iterable[Question], on_progress: Callable[[int], None] = lambda queries: None
    ) -> Iterator[RankedQuery]:
        """Yield the rankings in the order of the queries. A few hundred queries are in memory at a time.

        on_progress: called with the number of further queries that were searched.
        """
        rest = iter(queries)
        while part := list(islice(rest, QUERIES_AT_ONCE)):
            found: list[tuple[Scores, RowIds]] = []
            for start in range(0, len(part), self.batch_size):
                found += self._found(part[start : start + self.batch_size])
                on_progress(len(found) - start)
            names = self._names(self.searchers[0].corpus, [rows for _, rows in found])
            for query, (scores, rows) in zip(part, found, strict=True):
                yield self._ranked(query, scores, [names[row] for row in rows.tolist()])

    def _found(self, batch: Sequence[Question]) -> Iterator[tuple[Scores, RowIds]]:
        """Yield scores and rows of each query of a batch, best first."""
        texts = [query.question for query in batch]
        hits = [[*_hits(searcher, texts, self.depth)] for searcher in self.searchers]
        for of_query in zip(*hits, strict=True):
            yield of_query[0] if len(of_query) == 1 else reciprocal_rank_fusion([r for _, r in of_query], self.rrf_k)

    def _names(self, corpus: Corpus, found: Sequence[RowIds]) -> dict[int, str]:
        blocks = corpus.blocks(np.unique(np.concatenate(found)).tolist())
        return {row: block.id if self.unit == "block" else block.document for row, block in blocks.items()}

    def _ranked(self, query: Question, scores: Scores, names: list[str]) -> RankedQuery:
        first = {name: place for place, name in reversed([*enumerate(names)])}
        kept = sorted(first.values())[: self.top]
        return RankedQuery(query, [names[place] for place in kept], scores[kept])


def _hits(searcher: Searcher, texts: Sequence[str], depth: int) -> Iterator[tuple[Scores, RowIds]]:
    """Yield scores and rows of each text, without blocks that are no hits."""
    scores_BK, rows_BK = searcher.nearest(searcher.tokens(texts), depth)
    for scores, rows in zip(scores_BK, rows_BK, strict=True):
        hit = scores > searcher.least_score
        yield scores[hit], rows[hit]
