"""`realmctl plan`: what a run will take, before it runs."""

from __future__ import annotations

from pathlib import Path

from realmctl.cli import available_stages
from realmctl.pipeline import Command, Show, argument, help_texts, setting
from realmctl.pipeline.pipeline_file import pair


class Plan(Command):
    """Say what a run will take on this machine: hours, memory and disk of each stage, and the age of the index.

    Each stage is tried on a small sample of what it will read, in a temporary folder. Nothing else is written.
    """

    computes = True

    file: Path = argument("Pipeline file (YAML) of the run.")
    blocks: int | None = setting(
        "Number of blocks that each chunk will make, instead of those of its corpus.",
        default=None,
        at_least=1,
        at_most=10**13,
    )
    refresh_devices: int = setting(
        "Machines like this one that only refresh the index; 0 means that this one does.", default=0, at_least=0
    )
    index_age: int | None = setting(
        "Target age of the index in steps; prints how many such machines it takes.", default=None, at_least=1
    )
    until: tuple[str, ...] = setting("Plan only this output and what it needs. Give it again for more.", default=())
    var: tuple[str, ...] = setting(help_texts.VARIABLE, default=())

    def run(self, show: Show) -> None:
        from realmctl.extras.plan.index_age import Aging
        from realmctl.extras.plan.planning import make_plan, pipeline_plan_text

        aging = Aging(self.refresh_devices, self.index_age)
        known = available_stages.available_stages()
        variables = dict(map(pair, self.var))
        show(make_plan(self.file, variables, known, aging, self.blocks, self.until), pipeline_plan_text)
