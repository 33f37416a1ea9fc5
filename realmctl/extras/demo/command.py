"""`realmctl demo`: the whole pipeline on a generated miniature world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts.place import require_place
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, computes, path
from realmctl.pipeline.fields import MOST, MOST_WORKERS


@computes
def demo(
    folder: Annotated[Path, typer.Argument(parser=path, help="Folder for the world and all artifacts.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Seed of the world and of all stages.")] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, max=MOST_WORKERS, help="Number of stages that run at the same time.")
    ] = 2,
    json: Json = False,
) -> None:
    """Run the whole pipeline on a generated miniature world, in minutes and without network.

    It prints exact match with and without REALM pre-training, and answers two questions with evidence. After an
    interruption the same command continues. A second run finds everything made.
    """
    from realmctl.extras.demo.walkthrough import run_demo

    require_place(folder, str(folder))
    found = run_demo(folder, seed, jobs)
    answers = [f"{asked.question}\n{asked}" for asked in found.answers]
    more = f'To go on: realmctl ask "..." --workspace {found.workspace}; realmctl ls {found.workspace}'
    record = {**vars(found), "answers": [asked.record() for asked in found.answers]}
    print_result(record, json, lambda _: "\n\n".join([found.table, *answers, more]))
