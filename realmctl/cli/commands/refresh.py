"""`realmctl refresh`: rebuild the index of a running pretrain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, computes, path
from realmctl.errors import ConfigError
from realmctl.execution.shards import LOCAL, executor_names
from realmctl.pipeline.fields import check_device


@computes
def refresh(
    run: Annotated[
        Path,
        typer.Argument(
            parser=path, help="Folder `live` of the unfinished version that pretrain writes: vN.partial/live."
        ),
    ],
    device: Annotated[str, typer.Option(help="Device to embed on: auto, cpu or cuda:N.")] = "auto",
    executor: Annotated[
        str,
        typer.Option(
            help="Where blocks are embedded: on this device (local), or by ray on the cluster that RAY_ADDRESS names."
        ),
    ] = LOCAL,
    json: Json = False,
) -> None:
    """Rebuild the index of a running pretrain from its newest snapshots.

    Pretrain starts this itself. Start it by hand to use another GPU or another host.
    """
    from realmctl.training.refresh.refresher import serve

    check_device("--device", device)
    if executor not in executor_names():
        raise ConfigError(f"--executor {executor}: use one of {', '.join(executor_names())}.")
    serve(run, device, executor)
    print_result({"run": str(run)}, json, lambda value: f"{value['run']}: the run has ended")
