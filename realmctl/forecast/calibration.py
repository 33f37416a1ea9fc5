"""Measure this machine with a sample of the run: the same pipeline with a part of its corpus and a few steps of each training stage.

The sample runs in a temporary folder. Each stage's rate is its work on the sample over its time, without the time before its first unit
of work; the same rate then holds for the whole run.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import InputError
from realmctl.forecast.chain import PlannedStage
from realmctl.forecast.costs import Cost, Made, ShapeOf, WorkKind, cost_of
from realmctl.forecast.machines import FAISS_RATE, Machines
from realmctl.forecast.samples import Sample, sample_of
from realmctl.forecast.sizes import Text
from realmctl.log import say
from realmctl.pipeline.pipeline import Pipeline, PipelineStep

SAMPLE_BYTES = 2_000_000
"""Bytes of each corpus that the sample has, decompressed."""
SMALL_SAMPLE_BYTES = 262_144
"""The same of a second sample of stages that map over text. Their time on it is the time to start: imports and worker processes."""
SAMPLE_STEPS = 12
TEXT_STAGES = ("chunk", "tag")
MEASURED = ("chunk", "tag", "mlm-init", "condenser-init", "ict-init", "embed", "build-index", "pretrain")
"""Stages that the sample runs. The others train as fast as these: with a sample of the corpus, few questions have an answer
in reach, so that `finetune` would skip most of its work."""
MEASURED_INDEXES = ("exact", "hnsw", "int8")
"""Types of index that the sample builds. Others may need more rows than it has, such as faiss to train; it has an exact index in their place."""


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What the sample says.

    Attributes:
        machines: This machine, `devices` times.
        texts: {output: its blocks} of the chunk stages, over the whole corpus.
    """

    machines: Machines
    texts: dict[str, Text]


def calibrated(
    pipeline: Pipeline, chain: Sequence[PlannedStage], shape_of: ShapeOf, devices: int, refresh_devices: int
) -> Calibration:
    """Run a sample of a pipeline, and return the rates that it had.

    Raises the errors of the stages, such as InputError for a corpus that cannot be read.
    """
    with temporary_folder() as folder:
        return _Measurement(pipeline, chain, shape_of, folder).run(devices, refresh_devices)


@dataclasses.dataclass(frozen=True)
class _Start:
    """A text stage on a small sample: its work, the seconds of the first run and of the next one."""

    work: float
    first: float
    again: float


class _Measurement:
    def __init__(self, pipeline: Pipeline, chain: Sequence[PlannedStage], shape_of: ShapeOf, folder: Path) -> None:
        self.steps = {step.name: step for step in pipeline.steps}
        self.chain, self.shape_of, self.folder = chain, shape_of, folder
        self.artifacts: dict[str, Artifact] = {}
        self.small: dict[str, Artifact] = {}
        self.sizes, self.small_sizes = Made(), Made()
        self.texts: dict[str, Text] = {}
        self.by_kind: dict[WorkKind, list[tuple[float, float]]] = {}
        self.own: dict[str, float] = {}
        self.startup: dict[str, float] = {}

    def run(self, devices: int, refresh_devices: int) -> Calibration:
        for planned in self.chain:
            if planned.command in MEASURED and self.steps[planned.name].needs <= self.artifacts.keys():
                self._measure(planned)
        rates = {kind: sum(w for w, _ in found) / sum(s for _, s in found) for kind, found in self.by_kind.items()}
        rates = {"faiss": FAISS_RATE, **rates}
        machines = Machines("this machine", devices, refresh_devices, rates, self.own, self.startup)
        return Calibration(machines, self.texts)

    def _measure(self, planned: PlannedStage) -> None:
        say(f"plan: measuring {planned.name} ({planned.command})")
        small = None
        if planned.command in TEXT_STAGES:
            with suppress(InputError):  # the first documents may hold no text to keep, and no salient span
                small = self._start_of(planned)
        step, sample = self._sampled(self.steps[planned.name], planned, SAMPLE_BYTES)
        made, seconds = self._timed(step, self.artifacts, planned.name)
        self.artifacts[planned.name] = made
        text = None
        if sample is not None:
            text = Text(sample.nbytes, made.metrics["blocks"], made.metrics["mean_wordpieces"])
            self.texts[planned.name] = text.scaled(sample.corpus_bytes / sample.nbytes)
        sampled = planned.with_settings(**{name: step.values.get(name) for name in ("steps", "type")})
        cost = cost_of(sampled, self.sizes, text, self.shape_of)
        assert cost is not None
        if _measurable(planned):
            self._note(planned.name, cost, made, seconds, small)

    def _note(self, name: str, cost: Cost, made: Artifact, seconds: float, small: _Start | None) -> None:
        work, working = cost.work, seconds
        if cost.steps:
            working = cost.steps * float(made.metrics["seconds_per_step"])
            self.startup[name] = max(0.0, seconds - working)
        elif small and cost.work > 2 * small.work and seconds > small.again:
            work, working = cost.work - small.work, seconds - small.again
            self.startup[name] = max(0.0, small.first - small.work * working / work)
        self.own[name] = work / working
        self.by_kind.setdefault(cost.kind, []).append((work, working))

    def _start_of(self, planned: PlannedStage) -> _Start:
        """Run a text stage twice on a small sample: the first time has the imports too, as the first run of a command does."""
        step, sample = self._sampled(self.steps[planned.name], planned, SMALL_SAMPLE_BYTES)
        inputs = {**self.artifacts, **self.small}
        runs = [self._timed(step, inputs, f"{planned.name}-small-{number}") for number in range(2)]
        made = self.small[planned.name] = runs[1][0]
        text = Text(sample.nbytes, made.metrics["blocks"], made.metrics["mean_wordpieces"]) if sample else None
        cost = cost_of(planned, self.small_sizes, text, self.shape_of)
        assert cost is not None
        return _Start(cost.work, runs[0][1], runs[1][1])

    def _timed(self, step: PipelineStep, inputs: Mapping[str, Artifact], name: str) -> tuple[Artifact, float]:
        start = time.monotonic()
        made = step.build(inputs, self.folder).make(self.folder / name)
        return made, time.monotonic() - start

    def _sampled(self, step: PipelineStep, planned: PlannedStage, most: int) -> tuple[PipelineStep, Sample | None]:
        """The step with a sample of its corpus and few training steps, and the sample."""
        values: dict[str, Any] = {**step.values}
        sample = None
        if planned.command == "chunk":
            sample = sample_of(planned.settings["corpus"], self.folder / f"{step.name}-corpus-{most}", most)
            values["corpus"] = sample.files
        if planned.settings.get("steps"):
            values["steps"] = min(planned.settings["steps"], SAMPLE_STEPS)
            values["warmup"] = 1
        if planned.command == "pretrain":
            values |= {"refresh": "never", "recall_questions": None}
        if not _measurable(planned):
            values |= {"type": "exact", "factory": None, "option": (), "shards": 1}
        return dataclasses.replace(step, values=values), sample


def _measurable(planned: PlannedStage) -> bool:
    """Whether a sample of this stage tells its rate."""
    return planned.command != "build-index" or planned.settings["type"] in MEASURED_INDEXES
