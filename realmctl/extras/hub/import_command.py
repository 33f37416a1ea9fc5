"""`realmctl import`: make artifacts of published checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.artifacts import catalogue
from realmctl.artifacts.description import Pooling
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Out, Workspace, computes, path
from realmctl.pipeline.fields import MOST_WORKERS

ENCODERS = "Encoders of other projects"


@computes
def import_(
    source: Annotated[str, typer.Argument(help="Folder or hub id of a REALM checkpoint or of an encoder.")],
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
    block_encoder: Annotated[
        str | None,
        typer.Option(
            help="Folder or hub id of the block encoder, if SOURCE encodes queries alone.", rich_help_panel=ENCODERS
        ),
    ] = None,
    pooling: Annotated[
        Pooling | None,
        typer.Option(
            help="How states become one vector, for a plain encoder. Other folders say it themselves.",
            rich_help_panel=ENCODERS,
        ),
    ] = None,
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize/--no-normalize",
            help="Give vectors length 1. Default: as the folder says.",
            rich_help_panel=ENCODERS,
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            help="Factor of the inner products: the inverse of a temperature. Default: 1.", rich_help_panel=ENCODERS
        ),
    ] = None,
    query_prefix: Annotated[
        str | None,
        typer.Option(help="Text before each query. Default: the prompt in the folder.", rich_help_panel=ENCODERS),
    ] = None,
    block_prefix: Annotated[
        str | None,
        typer.Option(help="Text before each block. Default: the prompt in the folder.", rich_help_panel=ENCODERS),
    ] = None,
    block_form: Annotated[
        Literal["pair", "separated", "joined"] | None,
        typer.Option(
            help="Form of a block. joined: title and body as one text. separated: with [SEP] between them, DPR's. pair: the same in two "
            "segments. Default: separated for DPR, joined for others.",
            rich_help_panel=ENCODERS,
        ),
    ] = None,
    block_length: Annotated[
        int | None,
        typer.Option(
            help="Tokens of a block that are read. Default: 288, or what the encoder can read.",
            rich_help_panel=ENCODERS,
        ),
    ] = None,
    truncate_dim: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many numbers of a vector are used, for an encoder that was trained for it (Matryoshka). Default: all, or as the "
            "folder says.",
            rich_help_panel=ENCODERS,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, max=MOST_WORKERS, help="Worker processes; 0 = all cores.")] = 0,
    out: Out = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Make artifacts of a REALM checkpoint, or a retriever of an encoder.

    Of REALM's checkpoints, an embedder or a scorer becomes a retriever, an encoder an encoder, and a reader a
    span-reader. An open-QA checkpoint becomes blocks and a qa-model.

    Encoders are folders of sentence-transformers, Contriever, DPR and plain encoders of the families BERT,
    RoBERTa, XLM-R, CamemBERT, MPNet and ModernBERT. No code of a folder is executed.
    """
    from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
    from realmctl.imports.encoder_retriever import EncoderSettings

    settings = EncoderSettings(
        pooling=pooling,
        normalize=normalize,
        scale=scale,
        query_prefix=query_prefix,
        block_prefix=block_prefix,
        block_form=block_form,
        block_length=block_length,
        truncate_dim=truncate_dim,
    )
    extras = ImportExtras(tokenizer, block_records, titles, retriever, block_encoder, settings)
    artifacts = import_checkpoint(source, workspace, extras, workers, out)
    made = {kind: catalogue.summary(artifact) for kind, artifact in artifacts.items()}
    print_result({"made": made}, json, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
