"""`realmctl plan`: what a run will take, before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli import available_stages
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, computes, path
from realmctl.pipeline.fields import MOST
from realmctl.pipeline.pipeline_file import pair


@computes
def plan(
    file: Annotated[Path, typer.Argument(parser=path, help="Pipeline file (YAML) of the run.")],
    blocks: Annotated[
        int | None,
        typer.Option(
            min=1, max=10**13, help="Number of blocks that each chunk will make, instead of those of its corpus."
        ),
    ] = None,
    refresh_devices: Annotated[
        int,
        typer.Option(
            min=0, max=MOST, help="Machines like this one that only refresh the index; 0 means that this one does."
        ),
    ] = 0,
    index_age: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Target age of the index in steps; prints how many such machines it takes."),
    ] = None,
    var: Annotated[
        list[str] | None, typer.Option(help="name=value: replaces a variable of the file. Repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what a run will take on this machine: hours, memory and disk of each stage, and the age of the index.

    Each stage is tried on a small sample of what it will read, in a temporary folder. Nothing else is written.
    """
    from realmctl.extras.plan.index_age import Aging
    from realmctl.extras.plan.planning import make_plan, plan_text

    variables = dict(map(pair, var or ()))
    made = make_plan(file, variables, available_stages.available_stages(), Aging(refresh_devices, index_age), blocks)
    print_result(made, json, plan_text)


_MEASURED = "The stages are measured on this machine now. Run plan on the machine that you ask about."
plan.removed = {  # type: ignore[attr-defined]
    "--calibrate": "Every plan is measured now. Leave the option out.",
    **dict.fromkeys(("--device", "--devices", "--as-of-paper", "--price"), _MEASURED),
    **dict.fromkeys(
        ("--corpus", "--bert", "--steps", "--batch-size", "--candidates", "--refresh-every"),
        "Write the value into the pipeline file, as a variable that --var replaces.",
    ),
    "--rehearse": "The rehearsal is a test of realmctl now: python -m pytest -m slow tests/processes.",
}
"""{option that was removed: what to do instead}."""
