"""`realmctl pin`: let a series stand for one version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue, open_artifact
from realmctl.artifacts.place import is_series
from realmctl.artifacts.series import pin as pin_version
from realmctl.artifacts.series import unpin
from realmctl.cli import completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path
from realmctl.errors import InputError


def pin(
    version: Annotated[
        Path,
        typer.Argument(
            parser=path,
            autocompletion=completion.artifacts(),
            help="A version, such as qa-model/v2. With --remove, a series or a version of it.",
        ),
    ],
    remove: Annotated[
        bool, typer.Option("--remove", help="Let the series stand for its newest version again.")
    ] = False,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Let a series stand for this version instead of for its newest, in every command, in serve and in Python.

    gc keeps the pinned version, and ls marks it. A series has one pinned version.
    """
    place = catalogue.in_workspace(version, workspace)
    series = place.parent if is_series(place.parent) else place
    if remove:
        if not is_series(series):
            raise InputError(f"{version} is no series and no version. Name one.")
        unpin(series)
        print_result({"series": str(series), "pinned": None}, json, lambda _: f"{series} stands for its newest version")
        return
    artifact = open_artifact(place)
    pin_version(artifact)
    series = artifact.path.parent
    print_result({"series": str(series), "pinned": str(artifact.path)}, json, lambda value: value["pinned"])
