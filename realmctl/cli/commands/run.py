"""`realmctl run`: a YAML pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue
from realmctl.cli import available_stages
from realmctl.cli.invoke import emit
from realmctl.cli.options import DryRun, Json, path
from realmctl.pipeline import pipeline, pipeline_file


def run(
    file: Annotated[Path, typer.Argument(parser=path, help="YAML file of stages.")],
    until: Annotated[str | None, typer.Option(help="Stop after this output.")] = None,
    var: Annotated[list[str] | None, typer.Option(help="name=value, over the file's vars. Repeatable.")] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", parser=path, help="Instead of the file's workspace.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            rich_help_panel="Compute",
            help="Stages made at a time. They divide the cores, unless OMP_NUM_THREADS says how many threads each takes.",
        ),
    ] = 1,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Make the outputs of a YAML pipeline in order of their inputs; what is made already is skipped.

    With --jobs, stages that do not need each other run at once. After a failure the running ones are let end.
    """
    variables = dict(pipeline_file.pair(text) for text in var or [])
    plan = pipeline_file.read(file, available_stages.available_stages(), variables, workspace)
    steps = plan.until(until)
    if dry_run:
        emit({"steps": plan.outline(steps)}, json, pipeline.outline_text)
    else:
        made = {name: catalogue.summary(artifact) for name, artifact in plan.make(steps, jobs).items()}
        emit({"made": made}, json, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
