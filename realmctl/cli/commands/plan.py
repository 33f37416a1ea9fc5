"""`realmctl plan`: what a run will take, before it runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli import available_stages
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, path, text
from realmctl.errors import ConfigError, QualityError
from realmctl.pipeline.fields import MOST
from realmctl.pipeline.pipeline_file import pair

PAPER_DEVICES = (8, 64, 512)


def plan(
    file: Annotated[
        Path | None,
        typer.Argument(parser=path, help="Pipeline file (YAML) of the run. Default: the settings of the papers."),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(parser=path, help="Dump or other files instead of those of the file's chunk stages. Repeatable."),
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(min=1, max=10**13, help="Number of blocks to retrieve from, instead of a corpus.")
    ] = None,
    bert: Annotated[
        str | None, typer.Option(parser=text, help="BERT of retriever and reader: a folder, a hub id or scratch:SIZE.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, max=MOST, help="Steps of pretrain.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, max=MOST, help="Sentences per step of pretrain.")] = None,
    candidates: Annotated[int | None, typer.Option(min=2, max=MOST, help="Candidates per query of pretrain.")] = None,
    refresh_every: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Steps between the snapshots of pretrain.")
    ] = None,
    device: Annotated[
        str, typer.Option(parser=text, help="Device of the table: h200, h100, a100-80gb, a100-40gb, l40s, a10, l4.")
    ] = "h100",
    devices: Annotated[int, typer.Option(min=1, max=MOST, help="Number of devices.")] = 1,
    refresh_devices: Annotated[
        int,
        typer.Option(
            min=0, max=MOST, help="Further devices for the refresher; 0 means that it shares those that train."
        ),
    ] = 0,
    index_age: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST, help="Target age of the index in steps; prints how many refresher devices it takes."
        ),
    ] = None,
    price: Annotated[float | None, typer.Option(min=0, max=MOST, help="Price of a device for an hour.")] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Measure this machine with a sample of the run, and plan with it instead of --device."
        ),
    ] = False,
    as_of_paper: Annotated[
        bool, typer.Option("--as-of-paper", help="The setting of the REALM paper, on 8, 64 and 512 devices.")
    ] = False,
    rehearse: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=64,
            help="Plan nothing. Run the file's stages at toy scale in this number of processes and on a Ray cluster of this machine, "
            "kill some of them, and compare everything with one process. It takes minutes.",
        ),
    ] = None,
    var: Annotated[
        list[str] | None, typer.Option(help="name=value: replaces a variable of the file. Repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Forecast a run, or rehearse it: hours, memory, disk, network and price of each stage, and the age of the index.

    Nothing is written.

    Work is computed from the shapes. Times come from a table of devices and an assumed share of their peak, or from a short
    measurement here with --calibrate.
    """
    from realmctl.forecast.planning import PlanRequest, make_plan, plan_text

    if rehearse is not None:
        _rehearse(file, tuple(var or ()), rehearse, json)
        return
    if var and file is None:
        raise ConfigError("--var needs a pipeline file, whose variables it replaces.")
    request = PlanRequest(
        file=file,
        variables=tuple(var or ()),
        corpus=tuple(corpus or ()),
        blocks=blocks,
        bert=bert,
        pretrain={"steps": steps, "batch_size": batch_size, "candidates": candidates, "refresh_every": refresh_every},
        device=device,
        refresh_devices=refresh_devices,
        index_age=index_age,
        price=price,
        calibrate=calibrate,
    )
    if as_of_paper and (file or corpus or blocks or bert or calibrate):
        raise ConfigError(
            "--as-of-paper has its own corpus and model. Leave out the pipeline, --corpus, --blocks, --bert and --calibrate."
        )
    numbers = PAPER_DEVICES if as_of_paper else (devices,)
    known = available_stages.available_stages()
    plans = [make_plan(request, known, number) for number in numbers]
    print_result({"plans": plans}, json, lambda _: "\n\n".join(map(plan_text, plans)))


def _rehearse(file: Path | None, variables: tuple[str, ...], processes: int, json: bool) -> None:
    from realmctl.forecast.rehearsal.rehearsal import rehearse
    from realmctl.forecast.rehearsal.report import report_text

    runs = rehearse(file, available_stages.available_stages(), dict(map(pair, variables)), processes)
    equal = all(run.equal for run in runs)
    rows = [{**dataclasses.asdict(run), "equal": run.equal} for run in runs]
    print_result({"rehearsal": rows, "equal": equal}, json, lambda _: report_text(runs))
    if not equal:
        raise QualityError(
            "the rehearsal found differences, which the report names. Do not start the large run before they are explained."
        )
