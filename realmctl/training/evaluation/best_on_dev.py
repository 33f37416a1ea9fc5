"""Fine-tuning that keeps its best weights, by span exact match on development questions as in ORQA's trainer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.log import say
from realmctl.models.evaluating import evaluating
from realmctl.models.precision import autocast
from realmctl.models.weights import require_finite_scores
from realmctl.questions.questions import Question
from realmctl.training import data_parallel
from realmctl.training.evaluation.best_weights import KeepsBest
from realmctl.training.objective import Objective, Part
from realmctl.training.settings.finetune import FinetuneSettings


class Reading(Objective[Part]):
    """An objective that reads questions. Its metrics have `span_exact_match`."""

    questions: list[Question]

    @abstractmethod
    def parts(self, numbers: list[int], questions_in_batch: int) -> Sequence[Part]:
        """Return micro-batches of these questions, by number."""


class BestOnDev(KeepsBest, Generic[Part]):
    """Scores the weights every `dev_every` steps on the questions of `dev`, an objective on the same modules.

    The best weights and their score are in `folder`.
    """

    name = "dev"

    def __init__(self, dev: Reading[Part], settings: FinetuneSettings, folder: Path) -> None:
        super().__init__(settings.dev_every, dev.modules, folder)
        self.dev, self.settings = dev, settings

    def state(self) -> bool:
        """Return whether a step was scored before the checkpoint: `restore` needs the best weights then."""
        return self.weights is not None and bool(self.weights.best())

    def restore(self, state: bool) -> None:
        """Check that the best weights so far are there. Raises InputError if they were damaged or are missing."""
        self.require_best(state)

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Measure where it is due, but not the start."""
        return super().before_step(step) if step else {}

    def measure(self, step: int) -> dict[str, float]:
        """Score the weights, and keep them if they are better than all earlier ones."""
        score = self._span_exact_match()
        self.offer(step, score)
        return {"dev_span_exact_match": score}

    def take(self, step: int) -> dict[str, float]:
        """Called after `at_end`: load the best weights into the modules, and return their step and score.

        Raises:
            InputError: The files of the best weights are damaged. The same command continues the run without them.
        """
        best = self.best()
        if best is None:
            return {"best_dev_span_exact_match": self.at_last["dev_span_exact_match"]}
        say(f"finetune: the best of {step} steps on dev is step {best['step']}, span exact match {best['score']:.4f}")
        return {"best_step": best["step"], "best_dev_span_exact_match": round(best["score"], 6)}

    def _span_exact_match(self) -> float:
        """The share of the questions whose best span is an answer. Each process reads a part of the questions.

        Raises:
            NotFiniteError: The loss on them is not finite. Scores that are not have no best span.
        """
        right, count = 0.0, 0.0
        device = next(self.dev.modules.parameters()).device
        with evaluating(self.dev.modules), autocast(device, self.settings.precision):
            for numbers in batched([*range(len(self.dev.questions))], self.settings.batch_size):
                own = numbers[processes.rank() :: processes.world_size()]
                for part in self.dev.parts(own or numbers[:1], len(numbers)):  # all processes search together
                    loss, sums = self.dev.loss(part)
                    if loss is not None:
                        require_finite_scores(loss, "the reader")
                    matches, questions = sums["span_exact_match"]
                    right, count = (right + float(matches), count + float(questions)) if own else (right, count)
        found = data_parallel.exchange([right, count])
        return float(sum(matches for matches, _ in found) / sum(questions for _, questions in found))
