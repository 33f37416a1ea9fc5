"""`realmctl verify`: check every hash of artifacts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue
from realmctl.artifacts.catalogue_text import verified_text
from realmctl.cli import completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path


def verify(
    artifacts: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path,
            autocompletion=completion.artifacts(),
            help="Versions, series for their newest version, or folders of series. Default: the workspace.",
        ),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Recompute every hash of artifacts and of their parts. Of a workspace, every version is checked."""
    named = [catalogue.in_workspace(artifact, workspace) for artifact in artifacts or [workspace]]
    places = [version for place in named for version in catalogue.versions_at(place)]
    verified = [catalogue.verify_path(place) for place in places]
    print_result({"verified": [asdict(one) for one in verified]}, json, lambda _: verified_text(verified))
