"""`realmctl report`: write one HTML page about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts.place import require_place
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path
from realmctl.errors import ConfigError, require_package
from realmctl.pipeline.fields import MOST


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path, help="Models, scores or other training artifacts, or folders of them. Default: the workspace."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", parser=path, help="HTML file to write.")] = Path("report.html"),
    blocks: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            help="Blocks to search for answers. Default: the blocks of the scores, if they are in the workspace.",
        ),
    ] = None,
    questions: Annotated[
        int, typer.Option(min=0, max=MOST, help="Largest number of questions to show for each scores artifact.")
    ] = 200,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Write one HTML file: curves over steps, the step at which each question fails, and the evidence of each answer.

    The file needs no network.
    """
    if out.is_dir():
        raise ConfigError(f"--out {out} is a folder. Name an HTML file, such as {out / 'report.html'}.")
    require_place(out, f"--out {out}")
    for package in ("jinja2", "matplotlib"):
        require_package(package, "report", "realmctl report")
    from realmctl.extras.report import page

    written = page.write(runs or [workspace], out, blocks=blocks, workspace=workspace, questions=questions)
    print_result(written, json, lambda value: value.report)
