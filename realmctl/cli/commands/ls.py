"""`realmctl ls`: list artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl.artifacts import catalogue, catalogue_text
from realmctl.artifacts.place import is_series
from realmctl.cli import available_stages
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path
from realmctl.pipeline.comparing import Known, differences, known_in, shown
from realmctl.pipeline.headline import headline_text


def ls(
    folder: Annotated[
        Path | None,
        typer.Argument(
            parser=path,
            help="Folder of series, a series, or the name of a series in the workspace. Default: the workspace.",
        ),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """List the versions of all series: kind, size, time and the most important number of each.

    What differs between the versions of a series is named behind the number; for one series it stands in columns. A star marks
    a pinned version.
    """
    folder = catalogue.in_workspace(folder, workspace) if folder else workspace
    versions = catalogue.listing(folder)
    headlines = {version.path: _headline(version) for version in versions}
    several = len({version.path.parent for version in versions}) < len(versions)
    varying = (
        _varying(versions, known_in([folder.parent if is_series(folder) else folder, workspace])) if several else {}
    )
    listed = [
        {**version.json(), "headline": headlines[version.path], "differs": varying.get(version.path, {})}
        for version in versions
    ]
    value = {"folder": str(folder), "artifacts": listed}
    told = {path: {name: shown(value) for name, value in values.items()} for path, values in varying.items()}
    print_result(value, json, lambda _: catalogue_text.listing_text(folder, versions, headlines, told))


def _varying(versions: Sequence[catalogue.Version], known: Known) -> dict[Path, dict[str, Any]]:
    """{version: what differs from the other versions of its series that the same stage made}."""
    groups: dict[tuple[Path, str], list[catalogue.Version]] = {}
    for version in versions:
        if version.manifest:
            groups.setdefault((version.path.parent, version.manifest.stage), []).append(version)
    found = {}
    for group in groups.values():
        columns = differences([version.manifest for version in group if version.manifest], known)
        for place, version in enumerate(group):
            found[version.path] = {name: values[place] for name, values in columns.items()}
    return found


def _headline(version: catalogue.Version) -> str:
    """Return the headline of the stage that made an artifact; all metrics if no stage made it, as after `import`."""
    if version.manifest is None:
        return ""
    stage = available_stages.available_stages().get(version.manifest.stage)
    metrics = version.manifest.metrics
    return stage.headline_text(metrics) if stage else headline_text(("*",), metrics)
