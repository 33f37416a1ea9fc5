"""`realmctl run`: make the outputs of a YAML pipeline."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import catalogue
from realmctl.cli import available_stages
from realmctl.pipeline import Command, Show, argument, help_texts, output, pipeline, pipeline_file, runtime, setting
from realmctl.pipeline.fields import MOST_WORKERS


class Run(Command):
    """Make the outputs of a YAML pipeline in the order of their inputs. Outputs that exist are skipped.

    With --jobs, stages that do not need each other run at the same time. After a failure no other stage is started, and
    the running stages finish.
    """

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
        variables = dict(pipeline_file.pair(text) for text in self.var or [])
        plan = pipeline_file.read(self.file, available_stages.available_stages(), variables, self.workspace)
        steps = plan.until(self.until)
        if self.dry_run:
            show({"steps": plan.outline(steps)}, pipeline.outline_text)
        else:
            made = {name: catalogue.summary(artifact) for name, artifact in plan.make(steps, self.jobs).items()}
            show({"made": made}, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
