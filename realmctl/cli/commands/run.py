"""`realmctl run`: make the outputs of a YAML pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts import catalogue
from realmctl.cli import available_stages
from realmctl.cli.invoke import print_result
from realmctl.cli.options import DryRun, Json, computes, path
from realmctl.pipeline import pipeline, pipeline_file
from realmctl.pipeline.fields import MOST_WORKERS


@computes
def run(
    file: Annotated[Path, typer.Argument(parser=path, help="Pipeline file (YAML).")],
    until: Annotated[str | None, typer.Option(help="Make only this output and what it needs.")] = None,
    var: Annotated[
        list[str] | None, typer.Option(help="name=value: replaces a variable of the file. Repeatable.")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", parser=path, help="Workspace to use instead of the file's.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            max=MOST_WORKERS,
            rich_help_panel="Compute",
            help="Number of stages that run at the same time. They share the free cores, unless --threads or OMP_NUM_THREADS sets the threads of each.",
        ),
    ] = 1,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Make the outputs of a YAML pipeline in the order of their inputs. Outputs that exist are skipped.

    With --jobs, stages that do not need each other run at the same time. After a failure no other stage is started, and
    the running stages finish.
    """
    variables = dict(pipeline_file.pair(text) for text in var or [])
    plan = pipeline_file.read(file, available_stages.available_stages(), variables, workspace)
    steps = plan.until(until)
    if dry_run:
        print_result({"steps": plan.outline(steps)}, json, pipeline.outline_text)
    else:
        made = {name: catalogue.summary(artifact) for name, artifact in plan.make(steps, jobs).items()}
        print_result({"made": made}, json, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
