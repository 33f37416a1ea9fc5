"""Several stages together: the order of the data, and the steps of a pipeline, made one after the other or some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import ConfigError, InterruptedRun, RealmctlError
from realmctl.log import say, warn
from realmctl.pipeline.jobs import Jobs
from realmctl.stage import Stage
from realmctl.stage.planning import plan
from realmctl.stage.workspace import with_defaults


@dataclass(frozen=True)
class PipelineStep:
    """One output of a pipeline: its stage, the values given, what it takes from others.

    `inputs`: {field: output} for artifacts; `inside`: {field: "output/path"} for sources inside one.
    """

    name: str
    stage: type[Stage]
    values: Mapping[str, Any]
    inputs: Mapping[str, str]
    inside: Mapping[str, str]

    @property
    def needs(self) -> set[str]:
        """The outputs that must be made first."""
        return {*self.inputs.values(), *(place.partition("/")[0] for place in self.inside.values())}

    def build(self, made: Mapping[str, Artifact], workspace: Path) -> Stage:
        """The stage with its inputs in place."""
        values = dict(self.values) | {field: made[output] for field, output in self.inputs.items()}
        for field, place in self.inside.items():
            output, _, path = place.partition("/")
            values[field] = str(made[output].path / path)
        return self.stage(**with_defaults(self.stage, values, workspace))


@dataclass(frozen=True)
class Pipeline:
    """Steps in the order in which they can be made."""

    workspace: Path
    steps: tuple[PipelineStep, ...]

    def until(self, name: str | None) -> tuple[PipelineStep, ...]:
        """All steps, or `name` and what it needs. Raises ConfigError for an unknown output."""
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
        """Make every step that is not made already, `jobs` at a time. Returns the artifact of each output, in order of `steps`.

        With several jobs each is a child process. After a failure those that run are let end, no other is started, and
        the first failure is raised; anything else that ends this stops them.
        """
        if jobs > 1:
            with Jobs(jobs) as children:
                return _Schedule(self, tuple(steps), children).make()
        made: dict[str, Artifact] = {}
        for step in steps:
            say(f"--- {step.name} ({step.stage.command()})")
            made[step.name] = step.build(made, self.workspace).make(self.workspace / step.name)
        return made

    def outline(self, steps: Iterable[PipelineStep]) -> list[dict[str, Any]]:
        """The plan for `--dry-run`. What is made already is named, as far as all its inputs are."""
        made: dict[str, Artifact] = {}
        lines = []
        for step in steps:
            reused = self.made_already(step, made)
            if reused:
                made[step.name] = reused
            values = {name: _shown(value) for name, value in step.values.items()}
            inputs = {**step.inputs, **{name: f"@{place}" for name, place in step.inside.items()}}
            path = str(reused.path) if reused else None
            lines.append(
                {
                    "output": step.name,
                    "stage": step.stage.command(),
                    "inputs": inputs,
                    "values": values,
                    "made": path,
                }
            )
        return lines

    def made_already(self, step: PipelineStep, made: Mapping[str, Artifact]) -> Artifact | None:
        """The version that has the step's recipe; None where there is none, or an input is still to be made."""
        if not step.needs <= made.keys():
            return None
        planned = plan(step.build(made, self.workspace), self.workspace / step.name)
        return open_artifact(planned["makes"]) if planned["reuses"] else None


class _Schedule:
    """Starts a step as soon as what it needs is made and a job is free; the first in the pipeline where several could be."""

    def __init__(self, pipeline: Pipeline, steps: tuple[PipelineStep, ...], jobs: Jobs) -> None:
        self.pipeline, self.steps, self.jobs = pipeline, steps, jobs
        self.graph = TopologicalSorter({step.name: step.needs for step in steps})
        self.made: dict[str, Artifact] = {}
        self.ready: set[str] = set()
        self.failure: RealmctlError | None = None

    def make(self) -> dict[str, Artifact]:
        self.graph.prepare()
        while True:
            self.ready.update(self.graph.get_ready())
            if self.ready and not self.jobs.full and not self.failure:
                with self._noting_failure():
                    self._take(next(step for step in self.steps if step.name in self.ready))
            elif self.jobs.running:
                with self._noting_failure():
                    self._done(*self.jobs.next_made())
            else:
                break
        if self.failure:
            raise self.failure
        return {step.name: self.made[step.name] for step in self.steps}

    def _take(self, step: PipelineStep) -> None:
        """Start a step, or skip it."""
        self.ready.remove(step.name)
        say(f"--- {step.name} ({step.stage.command()})")
        made = self.pipeline.made_already(step, self.made)
        if made:
            say(f"{step.stage.command()}: nothing to do, {made.path} has this recipe")
            self._done(step.name, made)
        else:
            workspace = self.pipeline.workspace
            self.jobs.start(step.name, step.build(self.made, workspace), workspace / step.name)

    def _done(self, name: str, made: Artifact) -> None:
        self.made[name] = made
        self.graph.done(name)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """A step's failure is raised when the running ones have ended. An interruption is at once."""
        try:
            yield
        except InterruptedRun:
            raise
        except RealmctlError as error:
            self.failure = self.failure or error
            if self.jobs.running:
                running = ", ".join(job.name for job in self.jobs.running)
                warn(f"a stage has failed; waiting for those that run to end ({running})")


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def outline_text(value: Mapping[str, Any]) -> str:
    """A pipeline's dry run for people."""
    lines = []
    for step in value["steps"]:
        given = " ".join(f"{name}={it}" for name, it in {**step["inputs"], **step["values"]}.items())
        state = f"made: {step['made']}" if step["made"] else "to make"
        lines.append(f"{step['output']:<20} {step['stage']:<12} {state:<28} {given}".rstrip())
    return "\n".join(lines)
