"""`realmctl search`: print the best blocks for some words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl.cli import completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, computes, path, text
from realmctl.pipeline import help_texts
from realmctl.pipeline.fields import MOST
from realmctl.retrieval.names import Bm25Tokens, Fusion, search_methods

WIDTH = 100
"""Characters of a line of a block's text."""


@computes
def search(
    query: Annotated[list[str], typer.Argument(parser=text, help="Words or a question. Each argument is one query.")],
    method: Annotated[
        str | None,
        typer.Option(
            metavar=f"<{'|'.join(search_methods())}>",
            autocompletion=completion.choices(search_methods),
            help="dense: retriever and index. bm25: blocks alone. hybrid: both, fused. Default: dense where there is an index, else bm25.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", "-k", min=1, max=MOST, help="Number of blocks to print for a query.")
    ] = 5,
    blocks: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            autocompletion=completion.artifacts("blocks"),
            help="Default: the newest of <workspace>/blocks that have an index; for bm25 the newest.",
        ),
    ] = None,
    retriever: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            autocompletion=completion.artifacts("retriever"),
            help="Retriever or model that embeds the queries. Default: the newest of <workspace>/retriever that has an index of the blocks.",
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            autocompletion=completion.artifacts("index"),
            help="Index, or a model with one. Default: the newest of <workspace>/index that fits.",
        ),
    ] = None,
    bm25_weight: Annotated[float, typer.Option(min=0, max=1e6, help=help_texts.BM25_WEIGHT)] = 1.0,
    fusion: Annotated[Fusion, typer.Option(help=help_texts.FUSION)] = "ranks",
    bm25_stemmer: Annotated[str | None, typer.Option(help=help_texts.BM25_STEMMER)] = None,
    bm25_tokens: Annotated[Bm25Tokens, typer.Option(help=help_texts.BM25_TOKENS)] = "pieces",
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Print the best blocks for some words, each with its title, its score and its text.

    It searches what `chunk`, `embed` and `build-index` made. `rank` ranks for a file of queries.
    """
    from realmctl.retrieval.search.opening import load_search

    found = load_search(
        workspace,
        method=method,
        blocks=blocks,
        retriever=retriever,
        index=index,
        bm25_weight=bm25_weight,
        fusion=fusion,
        bm25_stemmer=bm25_stemmer,
        bm25_tokens=bm25_tokens,
    )
    results = [
        {
            "query": each,
            "hits": [
                {
                    "score": hit.score,
                    "title": hit.block.title,
                    "block": hit.block.id,
                    "document": hit.block.document,
                    "text": hit.block.text,
                }
                for hit in found.search(each, top)
            ],
        }
        for each in query
    ]
    print_result({"results": results}, json, _results_text)


def _results_text(value: Mapping[str, Any]) -> str:
    several, lines = len(value["results"]) > 1, []
    for result in value["results"]:
        lines += [result["query"], ""] if several else []
        for rank, hit in enumerate(result["hits"], 1):
            lines.append(f"{rank}. {hit['title'] or hit['document']}   score {hit['score']:.4g}   {hit['block']}")
            lines += [f"   {piece}" for line in hit["text"].splitlines() for piece in textwrap.wrap(line, WIDTH)]
        lines += ["no block shares a word with it"] * (not result["hits"])
        lines += [""] * several
    return "\n".join(lines).rstrip()
