"""`realmctl serve`: ask a model and edit its blocks in a browser, or over a JSON API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, computes, path, text
from realmctl.errors import require_package
from realmctl.pipeline.fields import MOST


@computes
def serve(
    qa_model: Annotated[
        Path | None, typer.Option(parser=path, help="Default: <workspace>/qa-model, if it exists.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            parser=path, help="Pre-trained model, for [MASK] and for edits. Default: <workspace>/model, if it exists."
        ),
    ] = None,
    closed_book: Annotated[
        Path | None,
        typer.Option(parser=path, help="qa-model fine-tuned with --retrieval none, whose answers are shown beside."),
    ] = None,
    retriever: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            help="Retriever to search with, where there is neither a qa-model nor a model. Default: <workspace>/retriever, if "
            "<workspace>/index exists, else BM25.",
        ),
    ] = None,
    blocks: Annotated[
        Path | None,
        typer.Option(parser=path, help="Default: the newest version of <workspace>/blocks that has an index."),
    ] = None,
    host: Annotated[str, typer.Option(parser=text, help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 means a free one.")] = 8000,
    name: Annotated[
        list[str] | None,
        typer.Option(
            parser=text, help="Name or address by which browsers reach this machine, beside localhost. Repeatable."
        ),
    ] = None,
    allow_edits: Annotated[
        bool, typer.Option("--allow-edits", help="Accept edits of blocks from those who have the token.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(parser=path, help="File whose first line is the token. Default: a new token, printed on stderr."),
    ] = None,
    mcp: Annotated[
        Literal["stdio", "http"] | None,
        typer.Option(
            help="Offer search, read_block and ask to agents (Model Context Protocol). http: at /mcp beside the API. stdio: on "
            "standard input and output, without page and API."
        ),
    ] = None,
    queue: Annotated[int, typer.Option(min=1, max=MOST, help="Requests that may wait; further ones get 503.")] = 64,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Serve a page and a JSON API on this machine: search, ask questions, see the evidence, edit blocks.

    Without a qa-model and without a pre-trained model it searches alone.

    It ends with Ctrl-C. --json prints the address as one JSON object as soon as it listens.

    An edit writes the next version of blocks, embeddings and index into the workspace, and is served once the rebuild has finished.
    """
    for package in ("fastapi", "uvicorn"):
        require_package(package, "serve", "realmctl serve")
    if mcp:
        require_package("mcp", "serve", "realmctl serve --mcp")
    from realmctl.extras.serve.web.server import Serving

    models = {"qa-model": qa_model, "model": model}
    models = {kind: given or _if_made(workspace / kind) for kind, given in models.items()}
    searching = retriever or (_if_made(workspace / "retriever") if _if_made(workspace / "index") else None)
    later = [workspace / kind for kind, path in models.items() if path is None]
    if len(later) == len(models) and searching is None:
        later.append(workspace / "index")

    def announce(address: str) -> None:
        if json:
            print_result({"address": address}, json, str)
            sys.stdout.flush()

    Serving(
        qa_model=models["qa-model"],
        model=models["model"],
        closed_book=closed_book,
        retriever=searching,
        blocks=blocks or workspace / "blocks",
        embeddings=workspace / "embeddings",
        indexes=workspace / "index",
        later=tuple(later),
        host=host,
        port=port,
        names=tuple(name or ()),
        allow_edits=allow_edits,
        token_file=token_file,
        most_waiting=queue,
        mcp=mcp,
        announce=announce,
    ).run()


def _if_made(series: Path) -> Path | None:
    return series if series.is_dir() else None
