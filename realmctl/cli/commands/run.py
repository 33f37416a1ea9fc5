"""`realmctl run`: make the outputs of a YAML pipeline."""

from __future__ import annotations

import itertools
from pathlib import Path

from realmctl.artifacts import Artifact, catalogue
from realmctl.cli import available_stages
from realmctl.errors import ConfigError
from realmctl.log import say
from realmctl.pipeline import (
    Command,
    Show,
    argument,
    comparing,
    help_texts,
    output,
    pipeline,
    pipeline_file,
    runtime,
    setting,
)
from realmctl.pipeline.fields import MOST_WORKERS
from realmctl.registry import offered


class Run(Command):
    """Make the outputs of a YAML pipeline in the order of their inputs. Outputs that exist are skipped.

    With --jobs, stages that do not need each other run at the same time. After a failure no other stage is started, and
    the running stages finish.
    """

    computes = True

    file: Path = argument("Pipeline file (YAML).")
    until: str | None = setting("Make only this output and what it needs.", default=None)
    var: tuple[str, ...] = setting(help_texts.VARIABLE, default=())
    sweep: tuple[str, ...] = setting(
        "Run the pipeline with each of these values of a variable, such as candidates=4,8, and compare what is made last. Several: with each "
        "combination.",
        default=(),
    )
    seeds: int = setting(
        "Run it with so many values of the variable seed, from 0 on, and compare what is made last.",
        default=0,
        at_least=0,
    )
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
        stages = available_stages.available_stages()
        given = dict(pipeline_file.pair(text) for text in self.var)
        runs = [{**given, **each} for each in self._combinations()]
        plans = [pipeline_file.read(self.file, stages, variables, self.workspace) for variables in runs]
        if self.dry_run:
            lines = [line for plan in plans for line in plan.outline(plan.until(self.until))]
            show({"steps": lines}, pipeline.outline_text)
            unknown = any(line["made"] is None and line["seconds"] is None for line in lines)
            if unknown and "plan" in offered("realmctl.commands"):
                say(f"realmctl plan {self.file} tells how long the steps take whose inputs are not made yet")
            return
        last: dict[Path, Artifact] = {}
        for number, (variables, plan) in enumerate(zip(runs, plans, strict=True), 1):
            if len(plans) > 1:
                say(
                    f"=== run {number} of {len(plans)}: {', '.join(f'{name}={value}' for name, value in variables.items())}"
                )
            made = plan.make(plan.until(self.until), self.jobs)
            newest = [*made.values()][-1]
            last[newest.path] = newest
        if len(plans) == 1:
            found = {name: catalogue.summary(artifact) for name, artifact in made.items()}
            show({"made": found}, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
            return
        if len(last) == 1:
            raise ConfigError(
                f"{self.file}: every run made the same {newest.path}, so the variables say nothing about it."
            )
        tables = comparing.compare(
            [(str(path), run.manifest) for path, run in last.items()],
            comparing.known_in([plans[0].workspace]),
            {name: stage.headline for name, stage in stages.items()},
        )
        show({"tables": tables}, lambda _: comparing.comparison_text(tables))

    def _combinations(self) -> list[dict[str, str]]:
        """The values of the variables that are swept, of each run. Raises ConfigError."""
        swept = {
            name: values.split(",") for name, values in (pipeline_file.pair(text, "--sweep") for text in self.sweep)
        }
        if self.seeds:
            swept["seed"] = [*map(str, range(self.seeds))]
        return [dict(zip(swept, values, strict=True)) for values in itertools.product(*swept.values())]
