"""The plan of a pipeline: each stage is tried on a small sample of what it will read, and says itself how long the whole takes.

The stages run in the order of the file, in a temporary folder. A stage that reads files from outside is tried on them. It then makes a small
artifact, on which the stages after it are tried; the work of these grows with the field that they name (`Stage.grows_with`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from realmctl.amounts import duration_text, size_text
from realmctl.artifacts import Artifact
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError, InputError, QualityError
from realmctl.extras.plan.index_age import Aging, PlannedIndex, planned_index
from realmctl.log import say, silent
from realmctl.pipeline import Stage, pipeline_file
from realmctl.pipeline.comparing import aligned
from realmctl.pipeline.pipeline import Pipeline, PipelineStep
from realmctl.pipeline.trial import NotTried
from realmctl.training.settings.pretrain import RefreshSettings


@dataclasses.dataclass(frozen=True)
class PlannedStage:
    """One stage.

    Attributes:
        name: Its output.
        command: The stage.
        seconds: Of the whole work; None if it is not known.
        memory_bytes: Largest memory of the process on the sample, and what the stage says of the whole, if that is more.
        disk_bytes: Of the artifact, or of the checkpoints of a training.
        why: Why the time is not known.
    """

    name: str
    command: str
    seconds: float | None = None
    memory_bytes: float = 0.0
    gpu_memory_bytes: float = 0.0
    disk_bytes: float = 0.0
    why: str = ""


@dataclasses.dataclass(frozen=True)
class PipelinePlan:
    """A plan.

    Attributes:
        blocks: {output: number of blocks} of the stages that make blocks.
        stages: A row for each stage.
        seconds: Of all stages whose time is known, one after the other.
        unknown: The outputs whose time is not known.
        index: How the index of `pretrain` ages; None without a refresh.
    """

    blocks: Mapping[str, int]
    stages: tuple[PlannedStage, ...]
    seconds: float
    unknown: tuple[str, ...]
    index: PlannedIndex | None


def make_plan(
    file: Path,
    variables: Mapping[str, str],
    stages: Mapping[str, type[Stage]],
    aging: Aging,
    blocks: int | None = None,
    until: Sequence[str] = (),
) -> PipelinePlan:
    """Return the plan of a pipeline file. Nothing is written but temporary files.

    Args:
        file: The pipeline file.
        variables: Values that replace those of the file.
        stages: {command: stage} of the stages that it may name.
        aging: What is asked of the index of `pretrain`.
        blocks: Number of blocks that each `chunk` will make, instead of those of its corpus.
        until: Outputs that are planned, with what they need; all of them where none is named.

    Raises:
        ConfigError: The file, or a value in it, is wrong.
        InputError: A file that a stage reads from outside is not found.
    """
    pipeline = pipeline_file.read(file, stages, variables, None)
    wanted = {step.name for name in until or (None,) for step in pipeline.until(name)}
    with temporary_folder() as folder:
        planner = _Planner(pipeline, folder, aging, blocks)
        rows = tuple(planner.row(step) for step in pipeline.steps if step.name in wanted)
    return PipelinePlan(
        blocks=planner.blocks,
        stages=rows,
        seconds=sum(row.seconds or 0.0 for row in rows),
        unknown=tuple(row.name for row in rows if row.seconds is None),
        index=planner.index,
    )


@dataclasses.dataclass(frozen=True)
class _Sample:
    """A small artifact, and how many times as large the whole one will be."""

    artifact: Artifact
    times: float


class _Planner:
    """Plans one stage after the other.

    Attributes:
        blocks: See `Plan`.
        index: See `Plan`.
    """

    def __init__(self, pipeline: Pipeline, folder: Path, aging: Aging, most_blocks: int | None) -> None:
        self.workspace, self.folder, self.aging, self.most_blocks = pipeline.workspace, folder, aging, most_blocks
        self.needed = {name for step in pipeline.steps for name in step.needs}
        self.samples: dict[str, _Sample] = {}
        self.seconds: dict[str, float] = {}
        self.blocks: dict[str, int] = {}
        self.index: PlannedIndex | None = None

    def row(self, step: PipelineStep) -> PlannedStage:
        """Make a sample of the stage's artifact if another stage reads it, and try the stage."""
        row = PlannedStage(step.name, step.stage.command())
        if missing := sorted(step.needs - self.samples.keys()):
            return dataclasses.replace(row, why=f"not known until {' and '.join(missing)} is made")
        say(f"plan: trying {step.name} ({step.stage.command()})")
        made = {name: sample.artifact for name, sample in self.samples.items()}
        with step.build(made, self.workspace).localised() as stage:
            stage.check()
            times = self._times(step, stage.grows_with)
            try:
                if step.name in self.needed or (stage.makes == "blocks" and not step.needs):
                    times *= self._sample(step, stage, times)
                return self._tried(row, step, stage, times)
            except NotTried as error:
                return dataclasses.replace(row, why=str(error))
            except (InputError, ConfigError, QualityError) as error:
                if not step.needs:
                    raise
                return dataclasses.replace(row, why=f"a sample is too small to try it: {error}")

    def _times(self, step: PipelineStep, field: str) -> float:
        """How many times as large as on the sample an input of the stage is; 1 for what is not made by the pipeline."""
        return self.samples[step.inputs[field]].times if field in step.inputs else 1.0

    def _sample(self, step: PipelineStep, stage: Stage, times: float) -> float:
        """Make a sample of the artifact, and note it. Returns by how much --blocks changes the work."""
        sample = stage.shrunk(self.folder / f"{step.name}-files")
        if sample is None:
            return 1.0
        small, larger = sample
        with silent():
            made = small.make_in(self.folder / step.name)
        changed = 1.0
        if stage.makes == "blocks" and not step.needs:
            blocks = made.metrics["blocks"] * larger
            changed = (self.most_blocks or blocks) / blocks
            self.blocks[step.name] = round(blocks * changed)
        self.samples[step.name] = _Sample(made, times * larger * changed)
        return changed

    def _tried(self, row: PlannedStage, step: PipelineStep, stage: Stage, times: float) -> PlannedStage:
        """The row, with the numbers that the stage says of itself."""
        trial, said = stage.trial().times(times), stage.estimate()
        seconds = trial.seconds
        if isinstance(stage, RefreshSettings) and stage.refresh != "never":
            built = self.seconds.get(step.inputs.get("index", ""), 0.0)
            self.index = planned_index(stage, trial, self._times(step, "blocks"), built, self.aging)
            seconds = self.index.seconds
        self.seconds[step.name] = seconds
        return dataclasses.replace(
            row,
            seconds=seconds,
            memory_bytes=max(trial.memory_bytes, times * said.get("memory_bytes", 0.0)),
            gpu_memory_bytes=trial.gpu_memory_bytes,
            disk_bytes=times * said["disk_bytes"] if "disk_bytes" in said else trial.disk_bytes,
        )


_HEAD = ("output", "stage", "time", "memory", "disk")


def pipeline_plan_text(plan: PipelinePlan) -> str:
    """Format a plan for people."""
    lines = [f"blocks: {', '.join(f'{name} {count:,}' for name, count in plan.blocks.items())}"] if plan.blocks else []
    lines.append(aligned([_HEAD, *map(_cells, plan.stages)]))
    lines += [f"{row.name}: {row.why}" for row in plan.stages if row.why]
    without = f", without {', '.join(plan.unknown)}" if plan.unknown else ""
    lines.append(f"together {duration_text(plan.seconds)} on this machine{without}")
    if plan.index is not None:
        lines += plan.index.lines()
    return "\n".join(lines)


def _cells(row: PlannedStage) -> tuple[str, ...]:
    if row.seconds is None:
        return (row.name, row.command, "not known", "", "")
    memory, disk = (size_text(int(size)) if size else "" for size in (row.memory_bytes, row.disk_bytes))
    return (row.name, row.command, duration_text(row.seconds), memory, disk)
