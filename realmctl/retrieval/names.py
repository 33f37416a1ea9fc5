"""The searchers and the answerers by name. Nothing heavy is imported here, so that the command line can list the names."""

from __future__ import annotations

from typing import Literal

from realmctl.registry import Registry

Bm25Tokens = Literal["pieces", "words"]
"""What BM25 compares: wordpieces, or the words that they make."""


def option_of_bm25(stemmer: str | None, compared: Bm25Tokens) -> str:
    """Return the option, as written, that BM25 alone obeys; empty if none is given."""
    if stemmer:
        return f"--bm25-stemmer {stemmer}"
    return "" if compared == "pieces" else f"--bm25-tokens {compared}"


NO_RETRIEVAL = "none"
"""The value of `--retrieval` for closed book, where no block is read."""

SEARCHERS = Registry(
    "searcher",
    group="realmctl.searchers",
    built_in={
        "dense": "realmctl.retrieval.search.dense:DenseSearcher",
        "bm25": "realmctl.retrieval.search.bm25:BM25Searcher",
    },
)

ANSWERERS = Registry(
    "answerer",
    group="realmctl.answerers",
    built_in={
        "extractive": "realmctl.retrieval.answering.extractive:ExtractiveAnswerer",
        "closed-book": "realmctl.retrieval.answering.closed_book:ClosedBookAnswerer",
        "generative": "realmctl.retrieval.answering.generative:GenerativeAnswerer",
    },
)
"""The names in `qa-model.json`."""


def retrieval_names() -> list[str]:
    """Return the values that `finetune --retrieval` accepts: the searchers, and none."""
    return [*SEARCHERS.names(), NO_RETRIEVAL]


HYBRID = "hybrid"
"""The value of `--method` for dense retrieval and BM25, fused."""
Fusion = Literal["ranks", "scores"]
"""What hybrid search sums up."""


def search_methods() -> list[str]:
    """Return the values that `--method` of `search` and `rank` accepts: the searchers, and hybrid."""
    return [*SEARCHERS.names(), HYBRID]
