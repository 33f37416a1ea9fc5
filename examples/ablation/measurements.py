"""What a line of results says about a run: its scores, its training in short, and the hash of its settings."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from arms import Arm
from grid import Grid

from realmctl.artifacts import Artifact
from realmctl.pipeline import roles
from realmctl.pipeline.pipeline import PipelineStep

SCORES = ("em", "recall@1", "recall@5", "recall@20", "questions")
UTILITY = ("top_1_utility", "retrieval_utility", "null_share")
AT_SWAPS = ("recall@1", "recall@5", "candidates_changed", "index_overlap", "index_drift")
WINDOWS = 20
"""The utility during training is averaged over this many equal parts of the run."""


def measurements(arm: Arm, made: Mapping[str, Artifact]) -> dict[str, Any]:
    """Return the measured part of the line of an arm, given the artifacts of its outputs."""
    line: dict[str, Any] = {"scores": _chosen(made[arm.scores], SCORES)}
    if arm.utilities:
        line["utility"] = {sentences: _chosen(made[output], UTILITY) for sentences, output in arm.utilities}
    if arm.key in made:
        line["training"] = training_in_short(made[arm.key])
    return line


def training_in_short(model: Artifact) -> dict[str, Any]:
    """Return the log of a pre-training in short: what was measured at swaps of the index, the utility in parts, alarms.

    `swaps` has a list for each metric, with null where it was not measured; `steps` are its steps.
    """
    lines = [json.loads(text) for text in model.file("metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    swaps = [line for line in lines if any(name in line for name in AT_SWAPS)]
    utility = [line["top_1_utility"] for line in lines if "top_1_utility" in line]
    size = max(1, len(utility) // WINDOWS)
    parts = [utility[start : start + size] for start in range(0, len(utility), size)]
    return {
        "steps": [line["step"] for line in swaps],
        "swaps": {name: [_short(line.get(name)) for line in swaps] for name in AT_SWAPS},
        "refresh_every": "never" if model.settings["refresh"] == "never" else model.settings["refresh_every"],
        "utility": [_short(fmean(part)) for part in parts],
        "alarms": model.metrics["alarms"],
    }


def settings_hash(folder: Path, steps: Iterable[PipelineStep], grid: Grid) -> str:
    """Return a hash of all settings behind a run. It does not depend on the seed, or on where the folder is."""
    described = [_described(step, str(folder)) for step in steps]
    worlds = {"practice": grid.practice, **grid.worlds}
    text = json.dumps([described, {name: dict(options) for name, options in worlds.items()}], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _described(step: PipelineStep, folder: str) -> dict[str, Any]:
    kinds = roles(step.stage)
    values = {
        name: _without_place(value, folder)
        for name, value in step.values.items()
        if name != "seed" and kinds[name].name != "runtime"
    }
    inputs = {**step.inputs, **step.paths_in_outputs}
    return {"stage": step.stage.command(), "version": step.stage.version, "values": values, "inputs": inputs}


def _without_place(value: Any, folder: str) -> str:
    """Return a value as text; of a path below the folder, the part behind the folder of a seed."""
    text = str(value)
    return "/".join(part for part in text.replace(folder, "").split("/") if not part.startswith("seed-"))


def _chosen(artifact: Artifact, names: Iterable[str]) -> dict[str, float | None]:
    return {name: _short(artifact.metrics[name]) for name in names if name in artifact.metrics}


def _short(value: float | None) -> float | None:
    return None if value is None else round(float(value), 5)
