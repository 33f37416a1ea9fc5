"""Every stage that runs in several processes or on Ray, undisturbed and with kills, against one process."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact
from realmctl.pipeline import Stage
from realmctl.pipeline.pipeline import Pipeline, PipelineStep
from tests.processes.commands import ALONE, RunningCommand, torchrun, words_of
from tests.processes.comparison import Difference, difference
from tests.processes.kills import kill_rank, kill_refresher
from tests.processes.nodes import Nodes, ray_nodes

CHECKPOINT_EVERY = 4
"""Steps between two checkpoints, as in chain.yaml."""
ATTEMPTS = 4
"""Runs until a kill comes before the end of one."""
RESTARTS = 2
Kill = Callable[[RunningCommand, Path], str]


@dataclasses.dataclass(frozen=True)
class ComparedRun:
    """One run that was compared.

    Attributes:
        output: Name of the output.
        stage: Name of the command.
        how: In what it ran, such as "2 processes".
        killed: Who was killed and when; empty for an undisturbed run.
        compared_with: The run that it must equal.
        exact: Whether every byte must be the same.
        difference: What differs; None if the run failed.
        failure: Why the run failed.
    """

    output: str
    stage: str
    how: str
    killed: str
    compared_with: str
    exact: bool
    difference: Difference | None = None
    failure: str = ""

    @property
    def equal(self) -> bool:
        """Whether the run ended, and equals the other one to the byte or to the tolerances."""
        return self.difference is not None and (
            self.difference.same_bytes or (not self.exact and self.difference.close)
        )


def compared(pipeline: Pipeline, processes: int, folder: Path) -> list[ComparedRun]:
    """Make every output of a pipeline in one process, and again in several processes and on a Ray cluster of this machine.

    Args:
        pipeline: Its stages, small and with float32 on the CPU. A background refresh depends on the speed of the machine.
        processes: Number of training processes and of Ray nodes.
        folder: Where everything is written.
    """
    runs = _Runs(folder, processes, pipeline.make(pipeline.steps))
    return runs.rows(pipeline.steps)


class _Runs:
    """Runs the commands. Their inputs are what one process made, so each stage is compared by itself."""

    def __init__(self, folder: Path, processes: int, alone: Mapping[str, Artifact]) -> None:
        self.folder, self.processes, self.alone = folder, processes, alone

    def rows(self, steps: tuple[PipelineStep, ...]) -> list[ComparedRun]:
        """Return the rows of all steps that run in several processes or on Ray."""
        rows = []
        with ray_nodes(self.processes) if _has_ray() else nullcontext() as nodes:
            for step in steps:
                stage = step.build(self.alone, self.folder / "none")
                if stage.parallel:
                    rows += self._trained(step.name, stage)
                elif hasattr(stage, "executor"):
                    rows += self._mapped(step.name, stage, nodes)
        return rows

    def _trained(self, name: str, stage: Stage) -> list[ComparedRun]:
        """Undisturbed, with a killed process, and with a killed refresher."""
        row = ComparedRun(name, stage.command(), f"{self.processes} processes", "", "one process", exact=False)
        undisturbed = _Attempts(row, stage, torchrun(self.processes), self.folder / "undisturbed", self.alone[name])
        rows = [undisturbed.row()]
        if rows[0].failure:
            return rows
        row = dataclasses.replace(row, compared_with="the same, undisturbed", exact=True)
        kills: dict[str, Kill] = {"rank": partial(kill_rank, rank=self.processes - 1, after=CHECKPOINT_EVERY)}
        if getattr(stage, "refresh", "") == "lockstep":
            kills["refresher"] = kill_refresher
        for whom, kill in kills.items():
            start = torchrun(self.processes, RESTARTS)
            rows.append(_Attempts(row, stage, start, self.folder / whom, undisturbed.made(), kill).row())
        return rows

    def _mapped(self, name: str, stage: Stage, nodes: Nodes | None) -> list[ComparedRun]:
        """On Ray with a killed node. Without Ray in worker processes of this machine, where the stage has them."""
        if nodes is None:
            if stage.command() == "embed":
                return []
            row = ComparedRun(name, stage.command(), f"{self.processes} workers", "", "one process", exact=True)
            here = dataclasses.replace(stage, workers=self.processes)  # type: ignore[call-arg]
            return [_Attempts(row, here, ALONE, self.folder / "workers", self.alone[name]).row()]
        row = ComparedRun(name, stage.command(), f"{nodes.count} Ray nodes", "", "one process", exact=True)
        there = dataclasses.replace(stage, executor="ray", workers=0)  # type: ignore[call-arg]
        cluster = {"RAY_ADDRESS": nodes.address}
        return [_Attempts(row, there, ALONE, self.folder / "ray", self.alone[name], nodes.kill_one, cluster).row()]


@dataclasses.dataclass(frozen=True)
class _Attempts:
    """A stage that is made by its command, with a kill or without, and compared."""

    planned: ComparedRun
    stage: Stage
    start: list[str]
    folder: Path
    expected: Artifact
    kill: Kill | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def row(self) -> ComparedRun:
        """Run it, again if it ended before the kill."""
        for attempt in range(ATTEMPTS):
            out = self._series(attempt)
            log = self.folder / f"{self.planned.output}-{attempt}.log"
            with RunningCommand([*self.start, *words_of(self.stage, out)], log, self.environment) as run:
                killed = self.kill(run, out) if self.kill else ""
                failure = run.failure()
            if failure:
                return dataclasses.replace(self.planned, killed=killed, failure=failure)
            if killed or self.kill is None:
                found = difference(open_artifact(out), self.expected)
                return dataclasses.replace(self.planned, killed=killed, difference=found)
        return dataclasses.replace(self.planned, failure=f"it ended before the kill, {ATTEMPTS} times")

    def made(self) -> Artifact:
        """The artifact of a run without a kill."""
        return open_artifact(self._series(0))

    def _series(self, attempt: int) -> Path:
        return self.folder / str(attempt) / self.planned.output


def _has_ray() -> bool:
    return importlib.util.find_spec("ray") is not None
