"""The steps of a pipeline, run one after the other or several at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from realmctl.amounts import duration_text
from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.series import is_newest
from realmctl.errors import ConfigError, InterruptedRun, RealmctlError
from realmctl.log import name_step, say, warn
from realmctl.pipeline import Stage
from realmctl.pipeline.jobs import Jobs, told_of
from realmctl.pipeline.planning import plan
from realmctl.pipeline.workspace import with_defaults


@dataclass(frozen=True)
class PipelineStep:
    """One output of a pipeline.

    Attributes:
        name: Name of the output and of its series.
        stage: The stage that makes it.
        values: {field: value} of the fields that the file gives.
        inputs: {field: output} of the input artifacts that other steps make.
        paths_in_outputs: {field: "output/path"} of the sources that are files in the artifacts of other steps.
        starts_after: Outputs that are made first although this step does not read them.
    """

    name: str
    stage: type[Stage]
    values: Mapping[str, Any]
    inputs: Mapping[str, str]
    paths_in_outputs: Mapping[str, str]
    starts_after: frozenset[str] = frozenset()

    @property
    def needs(self) -> set[str]:
        """Names of the outputs that the step reads."""
        return {*self.inputs.values(), *(place.partition("/")[0] for place in self.paths_in_outputs.values())}

    def build(self, made: Mapping[str, Artifact], workspace: Path) -> Stage:
        """Return the stage with its inputs, given the artifacts `made` by other steps."""
        values = dict(self.values) | {field: made[output] for field, output in self.inputs.items()}
        for field, place in self.paths_in_outputs.items():
            output, _, path = place.partition("/")
            values[field] = str(made[output].path / path)
        return self.stage(**with_defaults(self.stage, values, workspace))


@dataclass(frozen=True)
class Pipeline:
    """Steps in the order in which they can run. options: Those of the command that runs them, as messages name them."""

    workspace: Path
    steps: tuple[PipelineStep, ...]
    options: frozenset[str] = frozenset()

    def until(self, name: str | None) -> tuple[PipelineStep, ...]:
        """Return all steps, or the step `name` and the steps it needs. Raises ConfigError for an unknown output."""
        if name is None:
            return self.steps
        by_name = {step.name: step for step in self.steps}
        if name not in by_name:
            raise ConfigError(f"--until {name}: this file makes {', '.join(by_name)}.")
        wanted, todo = set[str](), [name]
        while todo:
            step = by_name[todo.pop()]
            wanted.add(step.name)
            todo += step.needs
        return tuple(step for step in self.steps if step.name in wanted)

    def make(self, steps: Iterable[PipelineStep], jobs: int = 1) -> dict[str, Artifact]:
        """Make the artifacts that do not exist yet. Return the artifact of each output, in the order of `steps`.

        Args:
            steps: Steps in the order in which they can run.
            jobs: Number of stages that run at the same time. With more than one, each runs in a child process. After a
                failure no other stage is started, the running ones finish, and the first failure is raised.
        """
        if jobs > 1:
            with Jobs(jobs) as children:
                return _Schedule(self, tuple(steps), children).make()
        made: dict[str, Artifact] = {}
        steps = tuple(steps)
        counter = _Counter(len(steps))
        for number, step in enumerate(steps, 1):
            counter.announce(step)
            later = [each.name for each in steps[number:] if not each.stage.is_brief(each.values)]
            name_step(f"{number}/{len(steps)} {step.name}", later)
            try:
                made[step.name] = step.build(made, self.workspace).make(self.workspace / step.name)
            except InterruptedRun:
                raise
            except RealmctlError as error:
                error.args = (told_of(step.name, step.stage, error, self.options),)
                raise
        return made

    def outline(self, steps: Iterable[PipelineStep]) -> list[dict[str, Any]]:
        """Return the plan for `--dry-run`. A step is looked up in its series if all its inputs exist; if it is to be made, it is tried."""
        made: dict[str, Artifact] = {}
        lines = []
        for step in steps:
            known = self._planned(step, made, measure=True)
            reused = open_artifact(known["makes"]) if known and known["reuses"] else None
            if reused:
                made[step.name] = reused
            values = {name: _shown(value) for name, value in step.values.items()}
            inputs = {**step.inputs, **{name: f"@{place}" for name, place in step.paths_in_outputs.items()}}
            path = str(reused.path) if reused else None
            lines.append(
                {
                    "output": step.name,
                    "stage": step.stage.command(),
                    "inputs": inputs,
                    "values": values,
                    "made": path,
                    "seconds": known["estimate"].get("seconds") if known else None,
                }
            )
        return lines

    def existing(self, step: PipelineStep, made: Mapping[str, Artifact]) -> Artifact | None:
        """Return the version with the step's recipe. None if there is none, or if an input does not exist yet."""
        planned = self._planned(step, made)
        return open_artifact(planned["makes"]) if planned and planned["reuses"] else None

    def _planned(
        self, step: PipelineStep, made: Mapping[str, Artifact], *, measure: bool = False
    ) -> dict[str, Any] | None:
        """Return what a step would do; None if an input does not exist yet. With `measure` a part of its work is tried."""
        if not step.needs <= made.keys():
            return None
        stage, out = step.build(made, self.workspace), self.workspace / step.name
        if measure:
            with suppress(
                RealmctlError, OSError
            ):  # a part of the work may fail where all of it does not; making it tells
                return plan(stage, out, measure=True)
        return plan(stage, out)


class _Counter:
    """Says which of `total` steps begins, and how long the pipeline has run."""

    def __init__(self, total: int) -> None:
        self.total, self.begun, self.start = total, 0, time.monotonic()

    def announce(self, step: PipelineStep) -> None:
        self.begun += 1
        ago = duration_text(time.monotonic() - self.start)
        say(f"--- {self.begun}/{self.total} {step.name} ({step.stage.command()}), {ago} after the start")


class _Schedule:
    """Starts each step when its inputs exist and a job is free. If several steps can start, the first of the pipeline does.

    A step that begins while no other runs or can start gets all cores, because nothing can join it before it ends.
    """

    def __init__(self, pipeline: Pipeline, steps: tuple[PipelineStep, ...], jobs: Jobs) -> None:
        self.pipeline, self.steps, self.jobs = pipeline, steps, jobs
        names = {step.name for step in steps}
        self.graph = TopologicalSorter({step.name: step.needs | (step.starts_after & names) for step in steps})
        self.made: dict[str, Artifact] = {}
        self.ready: set[str] = set()
        self.counter = _Counter(len(steps))
        self.failure: RealmctlError | None = None

    def make(self) -> dict[str, Artifact]:
        self.graph.prepare()
        while True:
            self.ready.update(self.graph.get_ready())
            if self.ready and not self.jobs.full and not self.failure:
                with self._keeping_first_failure():
                    self._start(next(step for step in self.steps if step.name in self.ready))
            elif self.jobs.running:
                with self._keeping_first_failure():
                    self._finish(*self.jobs.next_made())
            else:
                break
        if self.failure:
            raise self.failure
        return {step.name: self.made[step.name] for step in self.steps}

    def _start(self, step: PipelineStep) -> None:
        """Start a step, or skip it if its artifact is the newest of its series."""
        self.ready.remove(step.name)
        alone = not self.ready and not self.jobs.running
        self.counter.announce(step)
        made = self.pipeline.existing(step, self.made)
        if made and is_newest(made):
            say(f"{step.stage.command()}: nothing to do, {made.path} has this recipe")
            step.build(self.made, self.pipeline.workspace).print_summary(made)
            self._finish(step.name, made)
        else:
            workspace = self.pipeline.workspace
            self.jobs.start(step.name, step.build(self.made, workspace), workspace / step.name, alone)

    def _finish(self, name: str, made: Artifact) -> None:
        self.made[name] = made
        self.graph.done(name)

    @contextmanager
    def _keeping_first_failure(self) -> Iterator[None]:
        """Keep a step's failure until the running steps have ended. An interruption is raised at once."""
        try:
            yield
        except InterruptedRun:
            raise
        except RealmctlError as error:
            self.failure = self.failure or error
            if self.jobs.running:
                running = ", ".join(job.name for job in self.jobs.running)
                warn(f"a stage failed; waiting for the running stages ({running})")


def _shown(value: object) -> Any:
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def outline_text(value: Mapping[str, Any]) -> str:
    """Format the plan of a pipeline for people."""
    lines = []
    for step in value["steps"]:
        given = " ".join(f"{name}={it}" for name, it in {**step["inputs"], **step["values"]}.items())
        takes = f", {duration_text(step['seconds'])}" if step["seconds"] is not None else ""
        state = f"made: {step['made']}" if step["made"] else f"to make{takes}"
        lines.append(f"{step['output']:<20} {step['stage']:<12} {state:<28} {given}".rstrip())
    return "\n".join(lines)
