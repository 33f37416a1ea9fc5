"""The weight of BM25 from the gaps of many questions.

Hybrid search weighs each ranking of a question by the square root of its gap, the distance of its first score from its tenth (`retrieval.search.methods`). The gap of one question
is noisy. The mean gaps of many say which of both rankings finds more in this collection:

    weight = LEVEL * (mean gap of BM25 / mean gap of dense retrieval) ** POWER, at least LEAST and at most MOST

The constants were chosen with the labels of six collections and one encoder, and tested with others (docs/results/hybrid.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from realmctl.artifacts import Writer
from realmctl.errors import InputError
from realmctl.execution.batches import batched
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.log import progress
from realmctl.retrieval.names import HYBRID
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.methods import PLACE, SMALLEST, Hybrid, gaps, start_method
from realmctl.retrieval.search.profile import SearchProfile

if TYPE_CHECKING:
    from realmctl.lab.asked_weight.weigh_bm25 import WeighBm25

LEVEL, POWER = 0.85, 4.0
LEAST, MOST = 0.7, 4.0
FEWEST = 100
"""With fewer different questions the weight would depend on which of them were asked."""


def weigh(settings: WeighBm25, out: Writer) -> Mapping[str, object]:
    """Write gaps.npy, float32 [Q, 2]: of each question the gaps of dense retrieval and of BM25.

    Returns `bm25_weight`, `questions`, the number of different ones, and `gap_bm25` and `gap_dense`, their mean gaps as hybrid search compares them.

    Raises InputError for fewer than `FEWEST` different questions, and what reading them and opening the search raise.
    """
    asked = list(dict.fromkeys(text for each in read_queries(settings.questions) if (text := each.question.strip())))
    if len(asked) < FEWEST:
        raise InputError(
            f"{settings.questions} has {len(asked)} different questions, and {FEWEST} are needed. With fewer the weight would depend on which were asked. "
            "Without this command hybrid search weighs each question alone."
        )
    profile = SearchProfile.of(settings.blocks, HYBRID, bm25_weight=1.0)
    searcher = start_method(profile, SearchInputs.of(settings))
    assert isinstance(searcher, Hybrid)
    gap_Q2 = np.array(list(_gaps(searcher, asked, settings.batch_size)), dtype=np.float32)
    np.save(out.file("gaps.npy"), gap_Q2, allow_pickle=False)
    dense, bm25 = gap_Q2.mean(axis=0, dtype=np.float64).tolist()
    weight = float(np.clip(LEVEL * (bm25 / max(dense, SMALLEST)) ** POWER, LEAST, MOST))
    return {
        "bm25_weight": round(weight, 6),
        "questions": len(asked),
        "gap_bm25": round(bm25, 6),
        "gap_dense": round(dense, 6),
    }


def _gaps(searcher: Hybrid, asked: list[str], batch_size: int) -> Iterator[tuple[float, ...]]:
    """Yield the gaps of dense retrieval and of BM25 for each question."""
    with progress(len(asked), "searching", "questions") as bar:
        for batch in batched(asked, batch_size):
            tokens = searcher.tokens(batch)
            for rankings in zip(*(each.ranked(tokens, PLACE) for each in searcher.searchers), strict=True):
                yield tuple(gaps(rankings, min(PLACE, len(searcher.corpus)), searcher.searchers[0].unit_score))
            bar.advance(len(batch))
