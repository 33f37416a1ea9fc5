"""`realmctl export`: write an artifact as a folder that other libraries load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, path


def export(
    artifact: Annotated[
        Path, typer.Argument(parser=path, help="A retriever, encoder or reader, or a model for its retriever.")
    ],
    folder: Annotated[Path, typer.Argument(parser=path, help="Folder to write. It must not exist.")],
    side: Annotated[
        Literal["query", "block"] | None, typer.Option(help="Tower to export from a retriever with separate towers.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a folder that transformers' AutoModel loads. sentence-transformers loads the folder of a retriever too."""
    from realmctl.exchange.hub_export import export

    print_result(export(artifact, folder, side), json, lambda value: str(value["path"]))
