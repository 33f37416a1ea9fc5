"""The methods of a search: a searcher by its name, or hybrid, which fuses dense retrieval and BM25.

- By ranks: reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009). The score of a block is the sum of 1 / (k + rank) over the
  rankings that hold it; the first rank is 1. Scores of the rankings themselves do not count, so they need no common scale.
- By scores: the sum of both scores (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023), of every
  block that either ranking holds. The dense score is the logit of p(z|x), so it depends on the retriever's scale.

BM25's part may be multiplied by a weight. Legend: B questions, K blocks of a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index, RowIds, Scores, by_score
from realmctl.retrieval.names import HYBRID, Fusion, search_methods
from realmctl.retrieval.search.searcher import BlockSearch, Searcher, SearchInputs, searcher_type

RRF_K = 60
"""The constant of the paper."""
FUSED = ("dense", "bm25")


def searchers_of(method: str) -> list[type[Searcher]]:
    """Return the searchers that a method needs. Raises ConfigError for an unknown one, and else as `Registry.load`."""
    if method not in search_methods():
        raise ConfigError(f"there is no method of search {method!r}. Use one of: {', '.join(search_methods())}.")
    return [searcher_type(name) for name in (FUSED if method == HYBRID else (method,))]


def uses_index(method: str) -> bool:
    """Return whether a method needs a retriever and an index."""
    return any(searcher.uses_index for searcher in searchers_of(method))


def start_method(
    method: str,
    inputs: SearchInputs,
    rrf_k: float = RRF_K,
    depth: int = 0,
    bm25_weight: float = 1.0,
    fusion: Fusion = "ranks",
) -> BlockSearch:
    """Return what finds blocks by a method. The other arguments are those of `Hybrid`; `bm25_weight` is the weight of its BM25."""
    searchers = [searcher.start(inputs) for searcher in searchers_of(method)]
    return Hybrid(searchers, rrf_k, depth, (1.0, bm25_weight), fusion) if method == HYBRID else searchers[0]


class Hybrid(BlockSearch):
    """Searchers of the same blocks, whose rankings are fused. The first one must find as many blocks as it is asked for.

    rrf_k: constant of the fusion by ranks. depth: blocks that each searcher retrieves at least, however few are asked for. weights: one for
    each searcher; by default all are 1. fusion: what is summed, reciprocal ranks or scores.
    """

    def __init__(
        self,
        searchers: Sequence[Searcher],
        rrf_k: float = RRF_K,
        depth: int = 0,
        weights: Sequence[float] = (),
        fusion: Fusion = "ranks",
    ) -> None:
        self.searchers, self.rrf_k, self.depth, self.fusion = searchers, rrf_k, depth, fusion
        self.weights = weights or [1.0] * len(searchers)
        self.corpus, self.wordpiece = searchers[0].corpus, searchers[0].wordpiece

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        searchers = [searcher.over(blocks, index, opener) for searcher in self.searchers]
        return type(self)(searchers, self.rrf_k, self.depth, self.weights, self.fusion)

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[Scores, RowIds]:
        width = min(k, len(self.corpus))
        scores, rows = zip(*self.ranked(tokens, k), strict=True)
        return np.stack([own[:width] for own in scores]), np.stack([own[:width] for own in rows])

    def ranked(self, tokens: Sequence[TokenIds], k: int) -> list[tuple[Scores, RowIds]]:
        of_searchers = [searcher.ranked(tokens, max(k, self.depth)) for searcher in self.searchers]
        rankings = [[rows for _, rows in own] for own in zip(*of_searchers, strict=True)]
        if self.fusion == "ranks":
            return [reciprocal_rank_fusion(own, self.rrf_k, self.weights) for own in rankings]
        found = [np.unique(np.concatenate(own)) for own in rankings]
        row_BK = np.stack([np.resize(own, max(map(len, found))) for own in found])  # a shorter row repeats its own
        with torch.inference_mode():
            score_BK = sum(
                weight * searcher.scores(tokens, row_BK).float().cpu().numpy()
                for weight, searcher in zip(self.weights, self.searchers, strict=True)
            )
        assert isinstance(score_BK, np.ndarray)
        best = [by_score(score[None, : len(own)], own[None]) for score, own in zip(score_BK, found, strict=True)]
        return [(score_1K[0].astype(np.float32), row_1K[0]) for score_1K, row_1K in best]


def reciprocal_rank_fusion(
    rankings: Sequence[RowIds], k: float = RRF_K, weights: Sequence[float] = ()
) -> tuple[Scores, RowIds]:
    """Return scores float32 [n] and rows int64 [n] of one query, best first; equal scores are ordered by rising row.

    rankings: rows int64 [m] of each ranking, best first and without repetition; n is the number of different rows.
    weights: factor of each ranking; by default all are 1.
    """
    rows, place = np.unique(np.concatenate(rankings), return_inverse=True)
    scores: NDArray[np.float64] = np.zeros(len(rows))
    factors = weights or [1.0] * len(rankings)
    reciprocals = [
        factor / (k + np.arange(1, len(ranking) + 1)) for factor, ranking in zip(factors, rankings, strict=True)
    ]
    np.add.at(scores, place, np.concatenate(reciprocals))
    order = np.lexsort((rows, -scores))
    return scores[order].astype(np.float32), rows[order].astype(np.int64)
