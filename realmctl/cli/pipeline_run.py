"""A run of a YAML pipeline: what `realmctl run` does, without the options that rooms add to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import catalogue
from realmctl.cli import available_stages
from realmctl.log import say
from realmctl.pipeline import (
    Command,
    Show,
    argument,
    help_texts,
    output,
    pipeline,
    pipeline_file,
    runtime,
    setting,
)
from realmctl.pipeline.fields import MOST_WORKERS
from realmctl.pipeline.pipeline import Pipeline
from realmctl.registry import offered


class PipelineRun(Command):
    """The settings of a run, and one run."""

    computes = True

    file: Path = argument("Pipeline file (YAML).")
    until: str | None = setting("Make only this output and what it needs.", default=None)
    var: tuple[str, ...] = setting(help_texts.VARIABLE, default=())
    jobs: int = runtime(
        "Number of stages that run at the same time. They share the free cores, unless --threads or OMP_NUM_THREADS sets the threads of each.",
        default=1,
        at_least=1,
        at_most=MOST_WORKERS,
        short="-j",
    )
    workspace: Path | None = output("Workspace to use instead of the file's.", default=None, short="-w")
    dry_run: bool = output(help_texts.DRY_RUN, default=False)

    def run(self, show: Show) -> None:
        self.run_with({}, show)

    def run_with(self, more: Mapping[str, str], show: Show) -> None:
        """Run the pipeline once, with the variables of `--var`, and `more`."""
        plan = self.plan(more)
        if self.dry_run:
            show_outlines(self.file, plan.outline(plan.until(self.until)), show)
            return
        made = plan.make(plan.until(self.until), self.jobs)
        found = {name: catalogue.summary(artifact) for name, artifact in made.items()}
        show({"made": found}, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))

    def plan(self, more: Mapping[str, str]) -> Pipeline:
        """The pipeline with the variables of `--var`, and `more`."""
        given = dict(pipeline_file.pair(text) for text in self.var)
        return pipeline_file.read(self.file, available_stages.available_stages(), {**given, **more}, self.workspace)


def show_outlines(file: Path, lines: list[dict[str, Any]], show: Show) -> None:
    """Show what a run would do, and say what else tells how long it takes."""
    show({"steps": lines}, pipeline.outline_text)
    unknown = any(line["made"] is None and line["seconds"] is None for line in lines)
    if unknown and "plan" in offered("realmctl.commands"):
        say(f"realmctl plan {file} tells how long the steps take whose inputs are not made yet")
