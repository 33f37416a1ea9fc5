"""The methods of a search: a searcher by its name, or hybrid, which fuses dense retrieval and BM25.

- By scores: the weighted mean of both scores (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023), of every
  block that either ranking holds. In each ranking of a query the best score counts as 1 and the last as 0 (min-max).
  A ranking weighs as the square root of its gap, the distance of its first score from its tenth: one that is sure of its first blocks counts
  more (docs/results/hybrid.md).
- By ranks: reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009). The score of a block is the sum of 1 / (k + rank) over the
  rankings that hold it; the first rank is 1. Scores of the rankings themselves do not count.

BM25's part may be multiplied by a weight. Legend: B questions, K blocks of a question.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index, RowIds, Scores
from realmctl.retrieval.names import HYBRID, RANKERS, RRF_K, TEMPERATURE, Fusion, search_methods
from realmctl.retrieval.search.block_search import BlockSearch, Ranker, SearchInputs
from realmctl.retrieval.search.profile import DEPTH, SearchProfile

if TYPE_CHECKING:
    from realmctl.retrieval.search.searcher import Searcher

FUSED = ("dense", "bm25")
PLACE = 10
"""The rank whose score shows how far the first one stands out."""
GAP_OF_DENSE = 32.0
"""Factor of the gap of dense retrieval, in cosines: with it both gaps are alike where both rankings find as much."""
SMALLEST = 1e-9
"""Smallest difference between the ends of a ranking, where all its scores are equal."""


def temperature_of(fusion: Fusion | None) -> float:
    """By what the scores of a search are divided in p(z|x): of one searcher they are logits."""
    return 1.0 if fusion is None else TEMPERATURE / (RRF_K + 1) if fusion == "ranks" else TEMPERATURE


def searchers_of(method: str) -> list[type[Searcher]]:
    """Return the searchers that a method needs. Raises ConfigError for an unknown one, and else as `Registry.load`."""
    from realmctl.retrieval.search.searcher import searcher_type

    return [searcher_type(name) for name in _names_of(method)]


def _names_of(method: str) -> tuple[str, ...]:
    if method not in search_methods():
        raise ConfigError(f"there is no method of search {method!r}. Use one of: {', '.join(search_methods())}.")
    return FUSED if method == HYBRID else (method,)


def uses_index(method: str) -> bool:
    """Return whether a method needs a retriever and an index. Raises as `searchers_of`."""
    if method in FUSED:
        return method == FUSED[0]
    return any(uses_index(name) for name in FUSED) if method == HYBRID else searchers_of(method)[0].uses_index


def start_method(profile: SearchProfile, inputs: SearchInputs) -> BlockSearch:
    """Return what finds blocks as a profile says; what BM25 compares is that of the profile, not of the inputs."""
    own = _compared(inputs, profile)
    searchers = [_started(name, own) for name in _names_of(profile.method)]
    return hybrid(searchers, profile) if profile.method == HYBRID else searchers[0]


def keep_bm25(blocks: Artifact) -> None:
    """Compute BM25 where a search of blocks with an index takes it by default, so that the first one need not."""
    if (profile := SearchProfile.of(blocks, None)).method == HYBRID:
        _started("bm25", _compared(SearchInputs(blocks=blocks), profile))


def _compared(inputs: SearchInputs, profile: SearchProfile) -> SearchInputs:
    return dataclasses.replace(
        inputs, bm25_stemmer=profile.bm25_stemmer, bm25_tokens=profile.bm25_tokens or inputs.bm25_tokens
    )


def _started(name: str, inputs: SearchInputs) -> BlockSearch:
    """The ranker of this name where there is one for these inputs, which needs no PyTorch; else the searcher."""
    if name in RANKERS.names():
        found = RANKERS.load(name, Ranker).start(inputs)
        if found is not None:
            return found
    from realmctl.retrieval.search.searcher import searcher_type

    return searcher_type(name).start(inputs)


def hybrid(searchers: Sequence[BlockSearch], profile: SearchProfile) -> BlockSearch:
    """Return dense retrieval and BM25, in this order, fused as a profile says."""
    assert profile.depth and profile.fusion and profile.bm25_weight is not None
    return Hybrid(searchers, profile.depth, (1.0, profile.bm25_weight), profile.fusion)


class Hybrid(BlockSearch):
    """Searchers of the same blocks, whose rankings are fused. The first one must find as many blocks as it is asked for.

    depth: blocks that each searcher retrieves at least, however few are asked for. weights: one for each searcher; by default all are 1.
    fusion: what is summed, reciprocal ranks or scores.
    """

    def __init__(
        self,
        searchers: Sequence[BlockSearch],
        depth: int = DEPTH,
        weights: Sequence[float] = (),
        fusion: Fusion = "scores",
    ) -> None:
        self.searchers, self.depth, self.fusion = searchers, depth, fusion
        self.weights = weights or [1.0] * len(searchers)
        self.temperature = temperature_of(fusion)
        self.corpus, self.wordpiece = searchers[0].corpus, searchers[0].wordpiece

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        searchers = [searcher.over(blocks, index, opener) for searcher in self.searchers]
        return type(self)(searchers, self.depth, self.weights, self.fusion)

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[Scores, RowIds]:
        width = min(k, len(self.corpus))
        scores, rows = zip(*self.ranked(tokens, k), strict=True)
        return np.stack([own[:width] for own in scores]), np.stack([own[:width] for own in rows])

    def ranked(self, tokens: Sequence[TokenIds], k: int, among: RowIds | None = None) -> list[tuple[Scores, RowIds]]:
        width = min(max(k, self.depth), len(self.corpus if among is None else among))
        found = zip(*(searcher.ranked(tokens, width, among) for searcher in self.searchers), strict=True)
        return [fuse(own, width, self.weights, self.fusion, self.searchers[0].unit_score) for own in found]


def fuse(
    rankings: Sequence[tuple[Scores, RowIds]], width: int, weights: Sequence[float], fusion: Fusion, scale: float
) -> tuple[Scores, RowIds]:
    """Return scores float32 [n] and rows int64 [n] of one query by dense retrieval and BM25, in this order; see `summed`.

    width: blocks that either was asked for. scale: the dense score that stands for a cosine of 1.
    """
    if fusion == "ranks":
        return summed(rankings, [reciprocal_ranks(scores) for scores, _ in rankings], weights)
    sure = [weight * math.sqrt(gap) for weight, gap in zip(weights, gaps(rankings, width, scale), strict=True)]
    return summed(rankings, [min_max(scores, width) for scores, _ in rankings], sure if any(sure) else weights)


def reciprocal_ranks(scores: Scores) -> NDArray[np.float64]:
    """1 / (k + rank) of each block of a ranking, float64 [m]."""
    return 1 / (RRF_K + np.arange(1, len(scores) + 1))


def gaps(rankings: Sequence[tuple[Scores, RowIds]], width: int, scale: float) -> list[float]:
    """How far the first scores of dense retrieval and of BM25 stand out from the tenth, or from the last where only fewer than ten were asked for.

    A ranking that is shorter is BM25's, whose other blocks have 0. width, scale: see `fuse`.
    """
    place = min(PLACE, width)
    found = []
    for factor, (scores, _) in zip((GAP_OF_DENSE / scale, 1.0), rankings, strict=True):
        if len(scores):
            last = scores[place - 1] if len(scores) >= place else 0.0
            found.append(factor * float(scores[0] - last))
        else:  # nothing passed a filter, or no word is known
            found.append(0.0)
    return found


def min_max(scores: Scores, width: int) -> NDArray[np.float64]:
    """Scores of a ranking from 1 for the first to 0 for the last, float64 [m].

    A ranking with fewer blocks than `width` is BM25's, whose other blocks share no word with the query: then 0 stays 0.
    """
    if len(scores) < 2:
        return np.ones(len(scores))
    last = 0.0 if len(scores) < width else float(scores[-1])
    return (scores.astype(np.float64) - last) / max(float(scores[0]) - last, SMALLEST)


def summed(
    rankings: Sequence[tuple[Scores, RowIds]], parts: Sequence[NDArray[np.float64]], weights: Sequence[float]
) -> tuple[Scores, RowIds]:
    """Return scores float32 [n] and rows int64 [n] of one query, best first; equal scores are ordered by rising row.

    rankings: scores and rows [m] of each ranking, best first and without repetition; n is the number of different rows.
    parts: what each block of a ranking adds to its score, times the share of the ranking's weight.
    """
    rows, place = np.unique(np.concatenate([rows for _, rows in rankings]), return_inverse=True)
    scores: NDArray[np.float64] = np.zeros(len(rows))
    shares = np.array(weights) / sum(weights)
    np.add.at(scores, place, np.concatenate([share * part for share, part in zip(shares, parts, strict=True)]))
    order = np.lexsort((rows, -scores))
    return scores[order].astype(np.float32), rows[order].astype(np.int64)
