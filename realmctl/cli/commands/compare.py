"""`realmctl compare`: the runs of a sweep as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.artifacts import catalogue
from realmctl.cli import available_stages, completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path
from realmctl.pipeline.comparing import compare as compare_runs
from realmctl.pipeline.comparing import comparison_csv, comparison_text, known_in, runs_at


def compare(
    series: Annotated[
        list[Path],
        typer.Argument(
            parser=path, autocompletion=completion.artifacts(), help="Series, versions, or folders of series."
        ),
    ],
    form: Annotated[
        Literal["text", "csv"], typer.Option("--format", help="Form of the table; --json prints it as JSON.")
    ] = "text",
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Print a table of runs: the settings that vary, and the most important numbers.

    Runs that differ in their seed alone are one row, with the mean of each number and its 95 % confidence interval. If the
    runs read different artifacts, the settings of those are compared too: model.lr is the setting lr of the model.
    """
    runs = runs_at([catalogue.in_workspace(one, workspace) for one in series])
    known = known_in([workspace, *(run.path.parent.parent for run in runs)])
    headlines = {name: stage.headline for name, stage in available_stages.available_stages().items()}
    tables = compare_runs([(str(run.path), run.manifest) for run in runs], known, headlines)
    as_text = comparison_csv if form == "csv" else comparison_text
    print_result({"tables": tables}, json, lambda _: as_text(tables))
