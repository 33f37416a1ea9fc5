"""Read what enwiki.sh made: metrics of artifacts, and hits and right answers question by question."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, open_artifact, version_numbers
from realmctl.extras.split.splits import shortened
from realmctl.questions.questions import Question, read_questions
from realmctl.questions.scoring import fitting_scorers, judged

PARTS = ("train", "dev", "test")
DEPTHS = (1, 5, 20)
SHORT = 5
"""Longest answer of NQ-open, in words (Lee et al. 2019)."""


@dataclass(frozen=True)
class Folder:
    """A folder with a series for each output of a pipeline, finished or not."""

    path: Path

    @cached_property
    def made(self) -> Mapping[str, Artifact]:
        """The newest version of every output. Raises InputError for a damaged one."""
        series = sorted(self.path.iterdir()) if self.path.is_dir() else []
        return {path.name: open_artifact(path) for path in series if version_numbers(path)}

    def number(self, output: str, metric: str) -> float | None:
        """Return a metric of an output, or None if it was not measured."""
        value = self.made[output].metrics.get(metric) if output in self.made else None
        return None if value is None else float(value)

    def curve(self, output: str, metric: str) -> NDArray[np.float64]:
        """Return a metric of every training step, float64 [steps]; empty where there is no log."""
        if output not in self.made or not self.made[output].has("metrics.jsonl"):
            return np.empty(0)
        lines = self.made[output].file("metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return np.array([value for line in lines if (value := json.loads(line).get(metric)) is not None])

    def hits(self, output: str) -> NDArray[np.bool_] | None:
        """Return which of the retrieved blocks hold an answer, bool [questions, blocks], or None if it was not measured."""
        if output not in self.made:
            return None
        if not self.made[output].has("retrieved.json"):  # of eval-run
            return self._first_hits(output)
        entries = json.loads(self.made[output].file("retrieved.json").read_text(encoding="utf-8"))
        return np.array([[block["has_answer"] for block in entry["ctxs"]] for entry in entries], dtype=bool)

    def _first_hits(self, output: str) -> NDArray[np.bool_]:
        """Return at most one hit a question, at the smallest of `DEPTHS` within which eval-run found one.

        The questions have no ids, so `rank` numbered them from 1.
        """
        lines = self.made[output].file("per-query.jsonl").read_text(encoding="utf-8").splitlines()
        of_query = sorted(map(json.loads, lines), key=lambda values: int(values["query"]))
        hit_QK = np.zeros((len(of_query), max(DEPTHS)), dtype=bool)
        for row, values in zip(hit_QK, of_query, strict=True):
            row[[depth - 1 for depth in DEPTHS if values[f"Success@{depth}"]][:1]] = True
        return hit_QK

    def right(self, output: str, asked: Sequence[Question]) -> NDArray[np.bool_] | None:
        """Return which predictions match an answer by SQuAD's scorer, bool [questions], or None if it was not measured."""
        if output not in self.made:
            return None
        lines = self.made[output].file("predictions.jsonl").read_text(encoding="utf-8").splitlines()
        scorer = fitting_scorers(asked, "squad")[:1]
        judgements = [judged(q, json.loads(line)["prediction"], scorer) for q, line in zip(asked, lines, strict=True)]
        return np.array([found.verdicts[scorer[0]].name == "MATCH" for found in judgements], dtype=bool)


@dataclass(frozen=True)
class Experiment:
    """All runs of one folder.

    Attributes:
        folder: What enwiki.sh was given.
        seeds: Numbers of the seeds.
        split: Part of the questions that exact match is measured on.
    """

    folder: Path
    seeds: tuple[int, ...]
    split: str

    @cached_property
    def start(self) -> Folder:
        """What all seeds share."""
        return Folder(self.folder / "start")

    @cached_property
    def runs(self) -> tuple[Folder, ...]:
        """One folder for each seed."""
        return tuple(Folder(self.folder / f"seed-{seed}") for seed in self.seeds)

    @cached_property
    def asked(self) -> list[dict[str, Any]]:
        """All questions with their part and file, in the order of the recall's measurements."""
        return [json.loads(line) for line in (self.folder / "questions/all.jsonl").read_text("utf-8").splitlines()]

    @cached_property
    def answered(self) -> list[Question]:
        """The questions that exact match is measured on."""
        return read_questions(self.folder / f"questions/{self.split}.jsonl")

    @property
    def short(self) -> NDArray[np.bool_]:
        """Return which of the answered questions NQ-open's rule keeps: an answer has `SHORT` words at most, bool [questions]."""
        return np.array([shortened(question, SHORT) is not None for question in self.answered], dtype=bool)

    def where(self, part: str | None = None, file: str | None = None) -> NDArray[np.bool_]:
        """Return which of all questions belong to a part and a file, bool [questions]."""
        return np.array([part in (None, q["part"]) and file in (None, q["file"]) for q in self.asked], dtype=bool)

    @property
    def files(self) -> list[str]:
        """Names of the question files, in their order."""
        return list(dict.fromkeys(q["file"] for q in self.asked))

    def numbers(self, output: str, metric: str) -> dict[int, float]:
        """Return {seed: metric} of the seeds that measured it."""
        found = {seed: run.number(output, metric) for seed, run in zip(self.seeds, self.runs, strict=True)}
        return {seed: value for seed, value in found.items() if value is not None}

    def right(self, output: str) -> dict[int, NDArray[np.bool_]]:
        """Return {seed: right answers, bool [questions]} of the seeds that measured them."""
        found = {seed: run.right(output, self.answered) for seed, run in zip(self.seeds, self.runs, strict=True)}
        return {seed: value for seed, value in found.items() if value is not None}

    def hits(self, output: str) -> dict[int, NDArray[np.bool_]]:
        """Return {seed: hits, bool [questions, blocks]} of the seeds that measured them."""
        found = {seed: run.hits(output) for seed, run in zip(self.seeds, self.runs, strict=True)}
        return {seed: value for seed, value in found.items() if value is not None}
