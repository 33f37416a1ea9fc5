"""`realmctl search`: print the best blocks for some words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.pipeline import InWorkspace, Show, argument, help_texts, reads, setting, source
from realmctl.retrieval.names import Bm25Tokens, Fusion, search_methods

WIDTH = 100
"""Characters of a line of a block's text."""


class Search(InWorkspace):
    """Print the best blocks for some words, each with its title and section, its score and its text.

    It searches what `chunk`, `embed` and `build-index` made. `rank` ranks for a file of queries.
    """

    computes = True

    query: tuple[str, ...] = argument("Words or a question. Each argument is one query.")
    method: str | None = setting(
        "dense: retriever and index. bm25: blocks alone. hybrid: both, fused. Default: hybrid with an index.",
        default=None,
        choices=search_methods,
    )
    top: int = setting("Number of blocks to print for a query.", default=5, at_least=1, short="-k")
    blocks: Path | None = reads(
        "blocks",
        help="Default: the newest of <workspace>/blocks that have an index; for bm25 the newest.",
        explicit_only=True,
        default=None,
    )
    retriever: Path | None = reads(
        "retriever",
        help="Retriever or model that embeds the queries. Default: the newest of <workspace>/retriever that has an index of the blocks.",
        explicit_only=True,
        default=None,
    )
    index: Path | None = reads(
        "index",
        help="Index, or a model with one. Default: the newest of <workspace>/index that fits.",
        explicit_only=True,
        default=None,
    )
    filter: str | None = setting(help_texts.FILTER, default=None)
    bm25_weight: float | None = setting(help_texts.BM25_WEIGHT, default=None, at_least=0, at_most=1e6, advanced=True)
    fusion: Fusion | None = setting(help_texts.FUSION, default=None, advanced=True)
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None, advanced=True)
    bm25_tokens: Bm25Tokens | None = setting(help_texts.BM25_TOKENS, default=None, advanced=True)
    rerank: str | None = source(help_texts.RERANK, default=None, hub=True)
    rerank_depth: int | None = setting(help_texts.RERANK_DEPTH, default=None, at_least=1, used_with="rerank")
    rerank_fused: bool = setting(help_texts.RERANK_FUSED, default=False, used_with="rerank")

    def run(self, show: Show) -> None:
        from realmctl.retrieval.search.opening import load_search

        searched = ("method", "blocks", "retriever", "index", "bm25_weight", "fusion", "bm25_stemmer", "bm25_tokens")
        reranked = ("rerank", "rerank_depth", "rerank_fused")
        found = load_search(self.workspace, **{name: getattr(self, name) for name in (*searched, *reranked)})
        results = [
            {
                "query": each,
                "hits": [
                    {
                        "score": hit.score,
                        "title": hit.block.title,
                        "section": hit.block.section,
                        "block": hit.block.id,
                        "document": hit.block.document,
                        "page": hit.block.page or None,
                        "fields": hit.block.fields,
                        "text": hit.block.text,
                        "copies": [other.id for other in hit.copies],
                    }
                    for hit in found.search(each, self.top, self.filter)
                ],
            }
            for each in self.query
        ]
        told = {**(found.profile.told() if found.profile else {}), **({"filter": self.filter} if self.filter else {})}
        show({"search": told, "results": results}, _results_text)


def _results_text(value: Mapping[str, Any]) -> str:
    several, lines = len(value["results"]) > 1, []
    languages = {hit["fields"].get("language") for result in value["results"] for hit in result["hits"]}
    for result in value["results"]:
        lines += [result["query"], ""] if several else []
        for rank, hit in enumerate(result["hits"], 1):
            name = " / ".join(filter(None, [hit["title"] or hit["document"], hit["section"]]))
            page = f", page {hit['page']}" if hit["page"] else ""
            lines.append(f"{rank}. {name}{page}   score {hit['score']:.4g}   {hit['block']}")
            told = [
                f"{field} {', '.join(value) if isinstance(value, list) else value}"
                for field, value in hit["fields"].items()
                if field != "language" or len(languages) > 1
            ]
            lines += textwrap.wrap("; ".join(told), WIDTH, initial_indent="   ", subsequent_indent="   ")
            lines += [f"   {piece}" for line in hit["text"].splitlines() for piece in textwrap.wrap(line, WIDTH)]
            lines += [f"   the same text: {', '.join(hit['copies'])}"] * bool(hit["copies"])
        none = "no block that passes the filter" if "filter" in value["search"] else "no block"
        lines += [f"{none} shares a word with it"] * (not result["hits"])
        lines += [""] * several
    return "\n".join(lines).rstrip()
