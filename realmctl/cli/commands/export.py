"""`realmctl export`: an artifact as a folder for other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, path


def export(
    artifact: Annotated[
        Path, typer.Argument(parser=path, help="A retriever, encoder or reader, or a model for its retriever.")
    ],
    folder: Annotated[Path, typer.Argument(parser=path, help="New folder to write.")],
    side: Annotated[
        Literal["query", "block"] | None, typer.Option(help="Which tower of a retriever that has two.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a folder that transformers' AutoModel loads; a retriever's loads in sentence-transformers too."""
    from realmctl.exchange.hub_export import export

    emit(export(artifact, folder, side), json, lambda value: str(value["path"]))
