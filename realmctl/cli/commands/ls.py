"""`realmctl ls`: list artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue, catalogue_text
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
    versions = catalogue.listing(folder)
    headlines = {version.path: _headline(version) for version in versions}
    listed = [{**version.json(), "headline": headlines[version.path]} for version in versions]
    value = {"folder": str(folder), "artifacts": listed}
    print_result(value, json, lambda _: catalogue_text.listing_text(folder, versions, headlines))


def _headline(version: catalogue.Version) -> str:
    """Return the headline of the stage that made an artifact; all metrics if no stage made it, as after `import`."""
    if version.manifest is None:
        return ""
    stage = available_stages.available_stages().get(version.manifest.stage)
    metrics = version.manifest.metrics
    return stage.headline_text(metrics) if stage else headline_text(("*",), metrics)
