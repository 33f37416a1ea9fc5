"""`realmctl fill-mask`: fill the masks of one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, Workspace, path


def fill_mask(
    sentence: Annotated[str, typer.Argument(help="A sentence with one or more [MASK].")],
    model: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/model.")] = None,
    blocks: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/blocks.")] = None,
    candidates: Annotated[int, typer.Option(min=2, help="Candidates, the null document included.")] = 8,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Fill the [MASK]s of a sentence, with and without retrieval, candidate by candidate (REALM's Table 3)."""
    from realmctl.retrieval.answering.asking import fill_masks, filled_text

    fills = fill_masks(sentence, model or workspace / "model", blocks or workspace / "blocks", candidates)
    emit(fills, json, filled_text)
