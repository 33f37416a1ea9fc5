"""Searchers and answerers by name. Nothing heavy is imported here, so that the command line can list the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.registry import Registry

if TYPE_CHECKING:
    from realmctl.retrieval.answering.answerer import Answerer
    from realmctl.retrieval.search.searcher import Searcher

NO_RETRIEVAL = "none"
"""What `--retrieval` is called where no block is read."""

SEARCHERS: Registry[Searcher] = Registry(
    "searcher",
    base="realmctl.retrieval.search.searcher:Searcher",
    group="realmctl.searchers",
    built_in={
        "dense": "realmctl.retrieval.search.dense:DenseSearcher",
        "bm25": "realmctl.retrieval.search.bm25:BM25Searcher",
    },
)

ANSWERERS: Registry[Answerer] = Registry(
    "answerer",
    base="realmctl.retrieval.answering.answerer:Answerer",
    group="realmctl.answerers",
    built_in={
        "extractive": "realmctl.retrieval.answering.extractive:ExtractiveAnswerer",
        "closed-book": "realmctl.retrieval.answering.closed_book:ClosedBookAnswerer",
    },
)


def retrieval_names() -> list[str]:
    """What `finetune --retrieval` can be: the searchers, and none."""
    return [*SEARCHERS.names(), NO_RETRIEVAL]
