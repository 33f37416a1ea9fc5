"""A pipeline at toy scale: the same stages and settings, with a generated corpus, a tiny model, and a few steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from realmctl.extras.demo.world.make_world import write_world
from realmctl.extras.demo.world.settings import SIZES
from realmctl.pipeline import Stage, roles
from realmctl.pipeline.fields import heeded
from realmctl.pipeline.pipeline import Pipeline, PipelineStep
from stages.chunk import Chunk
from stages.mlm_init import MlmInit

STEPS = 24
CHECKPOINT_EVERY = 4
BERT = "scratch:L1-H32-A2"
WORDPIECES = 600
ROWS = 4
"""Fewest rows of a batch. With more processes, the batch has a row for each."""


@dataclasses.dataclass(frozen=True)
class Toy:
    """What the stages read at toy scale: folders of a generated world, and a BERT without dropout, so that runs can be compared."""

    corpus: Path
    questions: Path
    bert: Path

    @classmethod
    def write(cls, folder: Path) -> Toy:
        """Write the world and the BERT into a new folder, in seconds."""
        world = folder / "world"  # of a size that gives `embed`, too, several units of work
        write_world(world, dataclasses.replace(SIZES["demo"], parallel_worlds=0))
        corpus = world / "knowledge"
        blocks = Chunk(corpus=(corpus,), tokenizer=f"train:{WORDPIECES}", max_wordpieces=64, workers=1).make(
            folder / "toy-blocks"
        )
        bert = MlmInit(
            blocks=blocks,
            spans=None,
            bert=BERT,
            steps=1,
            batch_size=ROWS,
            length=32,
            dropout=0.0,
            precision="fp32",
            device="cpu",
        ).make(folder / "toy-bert")
        return cls(corpus, world / "train.jsonl", bert.path)

    def sources(self) -> dict[str, object]:
        """{field: value} of the sources that the world can replace."""
        return {
            "corpus": (self.corpus,),
            "tokenizer": str(self.bert),
            "bert": str(self.bert),
            "questions": self.questions,
        }


def toy_sizes(processes: int) -> dict[str, object]:
    """{field: value} of the settings that are replaced wherever a stage has them.

    float32 on the CPU and a low learning rate keep the differences of rounding small.
    """
    return {
        "steps": STEPS,
        "checkpoint_every": CHECKPOINT_EVERY,
        "batch_size": -(-ROWS // processes) * processes,
        "warmup": 4,
        "lr": 2e-4,
        "retriever_lr": None,
        "epochs": 2.0,
        "dropout": 0.0,
        "precision": "fp32",
        "device": "cpu",
        "micro_batch": 0,
        "max_wordpieces": 64,
        "length": 48,
        "query_length": 32,
        "window": 32,
        "reader_length": 96,
        "candidates": 4,
        "retriever_beam": 500,
        "reader_beam": 3,
        "projection": 16,
        "projection_init": "random",
        "head_init": "random",
        "head_layers": 1,
        "skip_from": 0,
        "refresh_every": 8,
        "refresh_drift": 0.001,
        "max_index_age": 0,
        "when_stale": "wait",
        "refresh_device": "cpu",
        "tagger": "auto",
        "sentence_splitter": "rules",
        "labels": (),
        "format": "auto",
        "shards": 1,
        "min_recall": 0.0,
        "stop_on": (),
        "track": None,
        "workers": 1,
        "executor": "local",
        "dev": None,
        "recall_questions": None,
        "regex_answers": None,
    }


_ALWAYS_READ: Mapping[str, tuple[str, ...]] = {"chunk": ("tokenizer",), "mlm-init": ("bert",)}
"""Sources with a default that is too large or differs from the toy's vocabulary."""


def toy_pipeline(pipeline: Pipeline, toy: Toy, processes: int, workspace: Path) -> Pipeline:
    """The steps of a pipeline that can be rehearsed and those that they need, at toy scale.

    A step can be rehearsed if it trains in several processes or maps on Ray, and if the world has what it reads from outside.
    """
    sources, known = toy.sources(), {step.name: step for step in pipeline.steps}
    possible = set[str]()
    for step in pipeline.steps:
        if _foreign_sources(step) <= sources.keys() and step.needs <= possible:
            possible.add(step.name)
    wanted, todo = set[str](), [name for name in possible if is_distributed(known[name].stage)]
    while todo:
        wanted.add(name := todo.pop())
        todo += known[name].needs - wanted
    steps = (_toy_step(step, sources, toy_sizes(processes)) for step in pipeline.steps if step.name in wanted)
    return Pipeline(workspace, tuple(steps))


def is_distributed(stage: type[Stage]) -> bool:
    """Whether a stage trains in several processes or maps over a Ray cluster."""
    return stage.parallel or "executor" in roles(stage)


def _foreign_sources(step: PipelineStep) -> set[str]:
    """Fields that a step reads from outside, apart from those that the toy leaves out."""
    given = {name for name, role in roles(step.stage).items() if role.name == "source" and name in step.values}
    left_out = {name for name, value in toy_sizes(1).items() if value is None}
    return given - left_out


def _toy_step(step: PipelineStep, sources: Mapping[str, object], sizes: Mapping[str, object]) -> PipelineStep:
    fields = roles(step.stage)
    given = {*step.values, *step.paths_in_outputs, *_ALWAYS_READ.get(step.stage.command(), ())}
    replaced = {
        name: value
        for name, value in {**sizes, **sources}.items()
        if name in fields and (name in sizes or name in given)
    }
    values = heeded(step.stage, {**step.values, **step.inputs, **replaced}, step.inputs)
    values = {name: value for name, value in values.items() if name not in step.inputs}
    if step.stage.command() == "embed":
        values["workers"] = 0  # it has workers on Ray alone
    if values.get("refresh", "background") == "background" and "refresh" in fields:
        values["refresh"] = "lockstep"  # a background refresh depends on the speed of this machine
    paths = {name: place for name, place in step.paths_in_outputs.items() if name not in replaced}
    return dataclasses.replace(step, values=values, paths_in_outputs=paths)
