"""The rehearsal: every stage that runs in several processes or on Ray, undisturbed and with kills, against one process."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import torch

from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError, ResourceError
from realmctl.forecast.rehearsal.commands import ALONE, RunningCommand, torchrun, words_of
from realmctl.forecast.rehearsal.comparison import Difference, difference
from realmctl.forecast.rehearsal.kills import kill_rank, kill_refresher
from realmctl.forecast.rehearsal.nodes import Nodes, ray_nodes
from realmctl.forecast.rehearsal.toy import CHECKPOINT_EVERY, Toy, toy_pipeline
from realmctl.log import say
from realmctl.pipeline import Stage, pipeline_file
from realmctl.pipeline.pipeline import PipelineStep

DEFAULT_FILE = Path(__file__).with_name("rehearsal.yaml")
ATTEMPTS = 4
"""Runs until a kill comes before the end of one."""
RESTARTS = 2
Kill = Callable[[RunningCommand, Path], str]


@dataclasses.dataclass(frozen=True)
class RehearsedRun:
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


def rehearse(
    file: Path | None, stages: Mapping[str, type[Stage]], variables: Mapping[str, str], processes: int
) -> list[RehearsedRun]:
    """Rehearse a pipeline file, or the stages of the papers.

    Everything is written to a temporary folder, and removed.

    Args:
        file: The pipeline file; None for rehearsal.yaml.
        stages: {command: stage} of the stages that the file may name.
        variables: Values of the file's variables.
        processes: Number of training processes and of Ray nodes.

    Raises:
        ConfigError: Fewer than two processes, or a file without a stage that can be rehearsed.
        ResourceError: This system is not Linux.
    """
    if processes < 2:
        raise ConfigError(f"--rehearse {processes}: use 2 processes or more.")
    if sys.platform != "linux":
        raise ResourceError("--rehearse finds the processes that it kills in /proc, so it needs Linux.")
    pipeline = pipeline_file.read(file, stages, variables, None) if file else None
    with temporary_folder() as folder, _one_thread():
        say("plan: rehearsing. Writing a small world, and making every output in one process")
        toy = Toy.write(folder)
        if pipeline is None:
            world = {"corpus": str(toy.corpus), "questions": str(toy.questions)}
            pipeline = pipeline_file.read(DEFAULT_FILE, stages, world, None)
        small = toy_pipeline(pipeline, toy, processes, folder / "one")
        if not small.steps:
            raise ConfigError(
                "this pipeline has no stage that can be rehearsed. Leave out the file to rehearse the papers' stages."
            )
        rehearsal = _Rehearsal(folder, processes, small.make(small.steps))
        return rehearsal.rows(small.steps)


class _Rehearsal:
    """Runs the commands. Their inputs are what one process made, so each stage is compared by itself."""

    def __init__(self, folder: Path, processes: int, alone: Mapping[str, Artifact]) -> None:
        self.folder, self.processes, self.alone = folder, processes, alone

    def rows(self, steps: tuple[PipelineStep, ...]) -> list[RehearsedRun]:
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

    def _trained(self, name: str, stage: Stage) -> list[RehearsedRun]:
        """Undisturbed, with a killed process, and with a killed refresher."""
        row = RehearsedRun(name, stage.command(), f"{self.processes} processes", "", "one process", exact=False)
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

    def _mapped(self, name: str, stage: Stage, nodes: Nodes | None) -> list[RehearsedRun]:
        """On Ray with a killed node. Without Ray in worker processes of this machine, where the stage has them."""
        if nodes is None:
            if stage.command() == "embed":
                return []
            row = RehearsedRun(name, stage.command(), f"{self.processes} workers", "", "one process", exact=True)
            here = dataclasses.replace(stage, workers=self.processes)  # type: ignore[call-arg]
            return [_Attempts(row, here, ALONE, self.folder / "workers", self.alone[name]).row()]
        row = RehearsedRun(name, stage.command(), f"{nodes.count} Ray nodes", "", "one process", exact=True)
        there = dataclasses.replace(stage, executor="ray", workers=0)  # type: ignore[call-arg]
        cluster = {"RAY_ADDRESS": nodes.address}
        return [_Attempts(row, there, ALONE, self.folder / "ray", self.alone[name], nodes.kill_one, cluster).row()]


@dataclasses.dataclass(frozen=True)
class _Attempts:
    """A stage that is made by its command, with a kill or without, and compared."""

    planned: RehearsedRun
    stage: Stage
    start: list[str]
    folder: Path
    expected: Artifact
    kill: Kill | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def row(self) -> RehearsedRun:
        """Run it, again if it ended before the kill."""
        say(f"plan: rehearsing {self.planned.output} in {self.planned.how}" + (", with a kill" if self.kill else ""))
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


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread, as each of the processes does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
