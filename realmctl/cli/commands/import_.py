"""`realmctl import`: make artifacts of published checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path


def import_(
    source: Annotated[str, typer.Argument(help="Folder or hub id of a transformers REALM checkpoint.")],
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder or hub id of a tokenizer, if the checkpoint has none.")
    ] = None,
    titles: Annotated[
        Path | None, typer.Option(parser=path, help="Open QA: text file with the title of one block on each line.")
    ] = None,
    block_records: Annotated[
        Path | None, typer.Option(parser=path, help="Open QA: block_records.npy, if the checkpoint has none.")
    ] = None,
    retriever: Annotated[
        Path | None,
        typer.Option(parser=path, help="Open QA: the imported embedder that made the index of the checkpoint."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Worker processes; 0 = all cores.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", parser=path, help="Folder for the series. Default: the workspace."),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Make artifacts of a published REALM checkpoint.

    An embedder or a scorer becomes a retriever, an encoder an encoder, and a reader a span-reader. An open-QA
    checkpoint becomes blocks and a qa-model. No code of a checkpoint is executed.
    """
    from realmctl.exchange.importing import ImportExtras, import_checkpoint

    extras = ImportExtras(tokenizer, block_records, titles, retriever)
    artifacts = import_checkpoint(source, out or workspace, extras, workers)
    made = {kind: catalogue.summary(artifact) for kind, artifact in artifacts.items()}
    print_result({"made": made}, json, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
