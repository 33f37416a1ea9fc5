"""The searchers and the answerers by name. Nothing heavy is imported here, so that the command line can list the names."""

from __future__ import annotations

import math
from typing import Literal, get_args

from realmctl.errors import ConfigError
from realmctl.registry import Registry

Bm25Tokens = Literal["pieces", "words"]
"""What BM25 compares: wordpieces, or the words that they make."""


def option_of_bm25(stemmer: str | None, compared: Bm25Tokens | None) -> str:
    """Return the option, as written, that BM25 alone obeys; empty if none is given."""
    if stemmer:
        return f"--bm25-stemmer {stemmer}"
    return "" if compared in (None, "pieces") else f"--bm25-tokens {compared}"


NO_RETRIEVAL = "none"
"""The value of `--retrieval` for closed book, where no block is read."""

SEARCHERS = Registry(
    "searcher",
    group="realmctl.searchers",
    core={
        "dense": "realmctl.retrieval.search.dense:DenseSearcher",
        "bm25": "realmctl.retrieval.search.bm25:BM25Searcher",
    },
)

RANKERS = Registry(
    "ranker",
    group="realmctl.rankers",
    core={"bm25": "realmctl.retrieval.search.postings:Bm25Ranking"},
)
"""What stands for a searcher of the same name where nothing is trained; None of its `start` leaves it to the searcher."""

FILTERS = Registry("filter", group="realmctl.filters", core={})
"""The language of filters, by the name `expression`."""

ANSWERERS = Registry(
    "answerer",
    group="realmctl.answerers",
    core={
        "extractive": "realmctl.retrieval.answering.extractive:ExtractiveAnswerer",
        "closed-book": "realmctl.retrieval.answering.closed_book:ClosedBookAnswerer",
    },
)
"""The names in `qa-model.json`."""

RRF_K = 60
"""The constant of reciprocal rank fusion, as in the paper."""
TEMPERATURE = 0.13
"""By what fused scores from 0 to 1 are divided in p(z|x)."""
RERANK_DEPTH = 50
"""Hits of a question that are reranked where nothing else is said."""

RERANKERS = Registry("kind of reranker", group="realmctl.rerankers", core={})
"""What reranks, by the kind of its artifact. The folder of another project is a cross-encoder."""


def retrieval_names() -> list[str]:
    """Return the values that `finetune --retrieval` accepts: the searchers, and none."""
    return [*SEARCHERS.names(), NO_RETRIEVAL]


HYBRID = "hybrid"
"""The value of `--method` for dense retrieval and BM25, fused."""
Fusion = Literal["ranks", "scores"]
"""What hybrid search sums up."""


def check_options(
    method: str,
    stemmer: str | None,
    compared: Bm25Tokens | None,
    weight: float | None = None,
    fusion: Fusion | None = None,
) -> None:
    """Raise ConfigError for an option that this method of search does not obey, or that has no such value. None: it is not given."""
    for flag, value, type_ in (("--bm25-tokens", compared, Bm25Tokens), ("--fusion", fusion, Fusion)):
        if value is not None and value not in get_args(type_):
            raise ConfigError(f"{flag} {value}: use one of {', '.join(get_args(type_))}.")
    if weight is not None and not 0 <= weight < math.inf:
        raise ConfigError(f"--bm25-weight {weight:g}: use a number of at least 0.")
    if (given := option_of_bm25(stemmer, compared)) and method == "dense":
        raise ConfigError(f"{given} is for BM25. Leave it out, or --method hybrid or bm25.")
    given = f"--bm25-weight {weight:g}" if weight is not None else f"--fusion {fusion}" if fusion else ""
    if given and method != HYBRID:
        raise ConfigError(
            f"{given} is for --method hybrid, which fuses two rankings. Leave it out, or say --method hybrid."
        )


def search_methods() -> list[str]:
    """Return the values that `--method` of `search` and `rank` accepts: the searchers, and hybrid."""
    return [*SEARCHERS.names(), HYBRID]
