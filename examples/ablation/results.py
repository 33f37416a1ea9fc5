"""Read the artifacts of the runs in FOLDER/seed-K/artifacts, with a series for each output.

Missing values are None or absent.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from arms import ARMS

from realmctl.artifacts import Artifact, open_artifact, version_numbers
from realmctl.errors import MismatchError

METRICS_FILE = "metrics.jsonl"


@dataclass(frozen=True)
class Run:
    """The pipeline run of one seed, finished or not."""

    seed: int
    folder: Path

    @cached_property
    def made(self) -> Mapping[str, Artifact]:
        """The newest version of every output. Raises InputError for a damaged one."""
        series = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return {path.name: open_artifact(path) for path in series if version_numbers(path)}

    def number(self, output: str, metric: str) -> float | None:
        """Return a metric of an output, or None if it was not measured."""
        value = self.made[output].metrics.get(metric) if output in self.made else None
        return None if value is None else float(value)

    def steps(self, output: str) -> list[dict[str, Any]]:
        """Return the training log: a record for each step, and a record of the measurements after the last step."""
        if output not in self.made or not self.made[output].has(METRICS_FILE):
            return []
        text = self.made[output].file(METRICS_FILE).read_text(encoding="utf-8")
        return [line for line in map(json.loads, text.splitlines()) if "step" in line]


def open_runs(folder: Path, seeds: Iterable[int]) -> list[Run]:
    """Open the runs of these seeds. Raises MismatchError if the arms of a seed answered different questions."""
    runs = [Run(seed, folder / f"seed-{seed}" / "artifacts") for seed in seeds]
    for run in runs:
        _require_same_questions(run)
    return runs


def _require_same_questions(run: Run) -> None:
    names = [name for arm in ARMS for name in (arm.scores, arm.before) if name in run.made]
    asked = {name: run.made[name].manifest["inputs"].get("questions") for name in names}
    odd = [name for name in names if asked[name] != asked[names[0]]]
    if odd:
        raise MismatchError(
            f"{run.folder}: {odd[0]} and {names[0]} were measured on different questions, so they "
            f"cannot be in one table. "
            "Run examples/ablation.sh to its end with one SPLIT."
        )


def by_seed(runs: Sequence[Run], output: str, metric: str) -> dict[int, float]:
    """Return {seed: value} of the seeds that have the metric."""
    return dict(_present((run.seed, run.number(output, metric)) for run in runs))


def _present(pairs: Iterator[tuple[int, float | None]]) -> Iterator[tuple[int, float]]:
    return ((seed, value) for seed, value in pairs if value is not None)
