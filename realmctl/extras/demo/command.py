"""`realmctl demo`: the whole pipeline on a generated miniature world."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts.place import require_place
from realmctl.pipeline import Command, Show, argument, runtime, setting
from realmctl.pipeline.fields import MOST_WORKERS


class Demo(Command):
    """Run the whole pipeline on a generated miniature world, in minutes and without network.

    It prints exact match with and without REALM pre-training, and answers two questions with evidence. After an
    interruption the same command continues. A second run finds everything made.
    """

    computes = True

    folder: Path = argument("Folder for the world and all artifacts.", default=Path("demo"))
    seed: int = setting("Seed of the world and of all stages.", default=0, at_least=0)
    jobs: int = runtime(
        "Number of stages that run at the same time.", default=2, at_least=1, at_most=MOST_WORKERS, short="-j"
    )

    def run(self, show: Show) -> None:
        from realmctl.extras.demo.walkthrough import run_demo

        require_place(self.folder, str(self.folder))
        found = run_demo(self.folder, self.seed, self.jobs)
        answers = [f"{asked.question}\n{asked}" for asked in found.answers]
        more = f'To go on: realmctl ask "..." --workspace {found.workspace}; realmctl ls {found.workspace}'
        record = {**vars(found), "answers": [asked.record() for asked in found.answers]}
        show(record, lambda _: "\n\n".join([found.table, *answers, more]))
