"""`realmctl refresh`: the index refresher of a running pretrain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, path


def refresh(
    run: Annotated[Path, typer.Argument(parser=path, help="Folder of a running pretrain: vN.partial/live.")],
    device: Annotated[str, typer.Option(help="Device to embed on.")] = "auto",
    json: Json = False,
) -> None:
    """Keep the index of a running pretrain fresh.

    Pretrain starts this itself; by hand it serves another GPU or host.
    """
    from realmctl.training.refresh.refresher import serve

    serve(run, device)
    emit({"run": str(run)}, json, lambda value: f"{value['run']} is over")
