"""`realmctl ls`: list artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue
from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, Workspace, path


def ls(
    folder: Annotated[
        Path | None,
        typer.Argument(parser=path, help="Folder of series, or a series. Default: the workspace."),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """List series and versions: size, age, what made them."""
    emit({"artifacts": catalogue.listing(folder or workspace)}, json, catalogue.listing_text)
