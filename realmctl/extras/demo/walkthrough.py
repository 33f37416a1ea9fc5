"""The demo: generate a world, run the pipeline on it, compare exact match with and without REALM, and answer two questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from realmctl.errors import ConfigError, InputError
from realmctl.extras.demo.comparison import table_text
from realmctl.extras.demo.world.make_world import write_world
from realmctl.extras.demo.world.settings import SIZES
from realmctl.log import say
from realmctl.pipeline import pipeline_file
from realmctl.pipeline.discovery import own_stages
from realmctl.retrieval.answering.qa_model import AnsweredQuestion, QaModel

PIPELINE = Path(__file__).with_name("demo.yaml")
ASKED = 2
"""Number of development questions that are answered at the end."""
SCORES = {"without REALM": "start-scores", "with REALM": "scores"}
DURATIONS = (
    "A quiet 2-core AMD EPYC took 4 min 57 s: copy pre-training (the output `encoder`) 2 min 6 s, retriever and index 25 s, pre-training (`model`) "
    "60 s, fine-tuning and scores 53 s, world, texts and answers 33 s. A slower hour took 5 min 59 s, and a busy machine takes several times as long."
)


@dataclass(frozen=True)
class DemoResult:
    """The end of a demo.

    Attributes:
        scores: Metrics by the name of the row of `table`.
        table: The scores as text.
        answers: The answer to each question.
        workspace: Folder of the artifacts.
    """

    scores: Mapping[str, Mapping[str, Any]]
    table: str
    answers: Sequence[AnsweredQuestion]
    workspace: str


def run_demo(folder: Path, seed: int, jobs: int) -> DemoResult:
    """Run the demo in a folder. What is there already is not made again.

    Args:
        folder: Folder of the world, `world`, and of the artifacts, `artifacts`.
        seed: Seed of the world and of all stages.
        jobs: Stages at a time.

    Raises:
        ConfigError: The folder has the demo of another seed.
        InputError: The folder has a damaged world.
    """
    say(f"demo: everything goes to {folder}. {DURATIONS}")
    world, artifacts = folder / "world", folder / "artifacts"
    _make_world(world, seed)
    variables = {"world": str(world), "seed": str(seed)}
    plan = pipeline_file.read(PIPELINE, own_stages(), variables, artifacts)
    made = plan.make(plan.steps, jobs)
    questions = (world / "dev.jsonl").read_text(encoding="utf-8").splitlines()[:ASKED]
    qa = QaModel.open(artifacts / "qa-model", blocks=artifacts / "blocks")
    return DemoResult(
        scores={name: dict(made[output].metrics) for name, output in SCORES.items()},
        table=table_text([f"{name}={made[output].path}" for name, output in SCORES.items()]),
        answers=qa.answer([json.loads(line)["question"] for line in questions], 1),
        workspace=str(artifacts),
    )


def _make_world(world: Path, seed: int) -> None:
    summary = world / "world.json"
    if not summary.exists():
        write_world(world, replace(SIZES["demo"], seed=seed))
        return
    try:
        there = json.loads(summary.read_text(encoding="utf-8"))["settings"]["seed"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{summary} is damaged. Remove the folder {world}, and run the command again.") from None
    if there != seed:
        raise ConfigError(f"{world} is the world of seed {there}. Use --seed {there}, or another folder.")
