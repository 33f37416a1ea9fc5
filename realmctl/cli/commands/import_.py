"""`realmctl import`: published checkpoints as artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue
from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, Workspace, path


def import_(
    source: Annotated[str, typer.Argument(help="Folder or hub id of a transformers REALM checkpoint.")],
    tokenizer: Annotated[str | None, typer.Option(help="Folder or hub id of its tokenizer, if it has none.")] = None,
    titles: Annotated[
        Path | None, typer.Option(parser=path, help="open QA: text file, the title of a block a line.")
    ] = None,
    block_records: Annotated[
        Path | None, typer.Option(parser=path, help="open QA: block_records.npy, if it has none.")
    ] = None,
    retriever: Annotated[
        Path | None, typer.Option(parser=path, help="open QA: the imported pre-trained embedder, which made its index.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes; 0 = all cores.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", parser=path, help="Folder of series to write to. Default: the workspace."),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Make artifacts of a published REALM checkpoint.

    An embedder or scorer becomes a retriever, an encoder an encoder, a reader a span-reader, and an open-QA
    checkpoint blocks and a qa-model. Nothing of a checkpoint is ever executed.
    """
    from realmctl.exchange.importing import ImportExtras, import_checkpoint

    extras = ImportExtras(tokenizer, block_records, titles, retriever)
    artifacts = import_checkpoint(source, out or workspace, extras, workers)
    made = {kind: catalogue.summary(artifact) for kind, artifact in artifacts.items()}
    emit({"made": made}, json, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
