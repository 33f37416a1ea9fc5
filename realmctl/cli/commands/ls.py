"""`realmctl ls`: list artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl.artifacts import catalogue
from realmctl.cli import available_stages
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path
from realmctl.pipeline.headline import headline_text


def ls(
    folder: Annotated[
        Path | None,
        typer.Argument(parser=path, help="Folder of series, or a series. Default: the workspace."),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """List the versions of all series: kind, size, time and the most important number of each."""
    folder = folder or workspace
    listed = [{**entry, "headline": _headline(entry)} for entry in catalogue.listing(folder)]
    print_result({"folder": str(folder), "artifacts": listed}, json, catalogue.listing_text)


def _headline(entry: Mapping[str, Any]) -> str:
    """Return the headline of the stage that made an artifact; all metrics if no stage made it, as after `import`."""
    metrics = entry.get("metrics", {})
    stage = available_stages.available_stages().get(entry.get("stage", ""))
    return stage.headline_text(metrics) if stage else headline_text(("*",), metrics)
