"""`realmctl export`: write an artifact as a folder that other libraries load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, path
from realmctl.errors import ConfigError


def export(
    artifact: Annotated[
        Path,
        typer.Argument(parser=path, help="A retriever, encoder or reader, a model for its retriever, or a ranking."),
    ],
    folder: Annotated[
        Path, typer.Argument(parser=path, help="Folder to write; for a ranking, a file. It must not exist.")
    ],
    side: Annotated[
        Literal["query", "block"] | None, typer.Option(help="Tower to export from a retriever with separate towers.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a folder that transformers' AutoModel loads. sentence-transformers loads the folder of a retriever too.

    A ranking becomes a TREC run file.
    """
    from realmctl.artifacts import open_artifact

    opened = open_artifact(artifact)
    if opened.kind == "ranking":
        from realmctl.exchange.run_export import export_run

        if side:
            raise ConfigError(
                f"--side {side}: {opened} is a ranking and has no sides (query, block). Leave --side out."
            )
        made = export_run(opened, folder)
    else:
        from realmctl.exchange.hub_export import export

        made = export(artifact, folder, side)
    print_result(made, json, lambda value: str(value["path"]))
