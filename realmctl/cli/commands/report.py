"""`realmctl report`: one HTML page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, Workspace, path
from realmctl.errors import require_package


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path, help="Models, scores, other training artifacts, or folders of them. Default: the workspace."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", parser=path, help="HTML file to write.")] = Path("report.html"),
    blocks: Annotated[
        Path | None,
        typer.Option(parser=path, help="Blocks to look for answers in. Default: those of the scores, if at hand."),
    ] = None,
    questions: Annotated[int, typer.Option(min=0, help="Questions to show of each scores, at most.")] = 200,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Write one HTML file, to be opened offline: curves over steps, where questions fail, and the evidence of each answer."""
    for package in ("jinja2", "matplotlib"):
        require_package(package, "report", "realmctl report")
    from realmctl.report import page

    written = page.write(runs or [workspace], out, blocks=blocks, workspace=workspace, questions=questions)
    emit(written, json, page.written_text)
