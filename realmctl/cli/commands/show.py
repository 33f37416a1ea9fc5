"""`realmctl show`: describe one artifact or file, and what it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue
from realmctl.artifacts.catalogue_text import shown_file_text, shown_text
from realmctl.cli import completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path


def show(
    artifact: Annotated[
        Path,
        typer.Argument(
            parser=path,
            autocompletion=completion.artifacts(),
            help="A version, a series, the name of a series in the workspace, or a file.",
        ),
    ],
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Print the manifest of an artifact, and the artifacts and files that it was made from.

    For a file, print its format, size and artifact.
    """
    if artifact.is_file():
        file = catalogue.show_file(artifact)
        print_result(file.json(), json, lambda _: shown_file_text(file))
    else:
        shown = catalogue.show(catalogue.in_workspace(artifact, workspace), workspace)
        print_result(shown.json(), json, lambda _: shown_text(shown))
