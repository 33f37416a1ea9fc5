"""`realmctl fill-mask`: predict the masked wordpieces of one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, computes, path, text
from realmctl.pipeline.fields import MOST
from realmctl.pipeline.workspace import default_series


@computes
def fill_mask(
    sentence: Annotated[str, typer.Argument(parser=text, help="A sentence with one or more [MASK].")],
    model: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/model.")] = None,
    blocks: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/blocks.")] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            help="Index to search. Default: the model's own, or the newest beside the blocks that fits newer blocks.",
        ),
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=2, max=MOST, help="Number of candidates, including the null document.")
    ] = 8,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Predict the [MASK]s of a sentence without retrieval, with each candidate, and with all (REALM's Table 3)."""
    from realmctl.retrieval.answering.pretrained_model import PretrainedModel

    model = model or default_series("fill-mask", "--model", "model", workspace / "model")
    filler = PretrainedModel.open(model, blocks=blocks or workspace / "blocks", index=index)
    filled = filler.fill_mask(sentence, candidates)
    print_result(filled, json, str)
