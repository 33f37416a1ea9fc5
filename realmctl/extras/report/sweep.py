"""What comparing adds to `realmctl run`: a pipeline with several values of its variables, and a table of what came of them."""

from __future__ import annotations

import itertools
from pathlib import Path

from realmctl.artifacts import Artifact
from realmctl.cli import available_stages
from realmctl.cli.pipeline_run import PipelineRun, show_outlines
from realmctl.errors import ConfigError
from realmctl.extras.report.comparing import compare, comparison_text
from realmctl.log import say
from realmctl.pipeline import Show, pipeline_file, setting
from realmctl.pipeline.comparing import known_in


class SweepOptions(PipelineRun):
    """A pipeline that runs several times."""

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

    def run(self, show: Show) -> None:
        runs = self._combinations()
        if len(runs) == 1:
            self.run_with(runs[0], show)
            return
        plans = [self.plan(variables) for variables in runs]
        if self.dry_run:
            show_outlines(self.file, [line for plan in plans for line in plan.outline(plan.until(self.until))], show)
            return
        last: dict[Path, Artifact] = {}
        given = dict(pipeline_file.pair(text) for text in self.var)
        for number, (variables, plan) in enumerate(zip(runs, plans, strict=True), 1):
            told = ", ".join(f"{name}={value}" for name, value in {**given, **variables}.items())
            say(f"=== run {number} of {len(plans)}: {told}")
            newest = [*plan.make(plan.until(self.until), self.jobs).values()][-1]
            last[newest.path] = newest
        if len(last) == 1:
            raise ConfigError(
                f"{self.file}: every run made the same {newest.path}, so the variables say nothing about it."
            )
        stages = available_stages.available_stages()
        tables = compare(
            [(str(path), run.manifest) for path, run in last.items()],
            known_in([plans[0].workspace]),
            {name: stage.headline for name, stage in stages.items()},
        )
        show({"tables": tables}, lambda _: comparison_text(tables))

    def _combinations(self) -> list[dict[str, str]]:
        """The values of the variables that are swept, of each run. Raises ConfigError."""
        swept = {
            name: values.split(",") for name, values in (pipeline_file.pair(text, "--sweep") for text in self.sweep)
        }
        if self.seeds:
            swept["seed"] = [*map(str, range(self.seeds))]
        return [dict(zip(swept, values, strict=True)) for values in itertools.product(*swept.values())]
