"""A warning when the blocks that fine-tuning retrieves hold almost no answers, so that there is almost nothing to learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realmctl.log import warn
from realmctl.retrieval.search.searcher import Searcher
from realmctl.training.objective import Observer
from realmctl.training.settings.finetune import FinetuneSettings

QUESTIONS = 64
"""Number of questions after which the shares are judged."""
ALMOST_NONE = 0.02


class AnswersInReach(Observer):
    """Logs what the searcher learned before each step, and judges once, after the first 64 questions of a run, or after its last step if it has fewer.

    Without steps it gives no warning.
    """

    def __init__(self, settings: FinetuneSettings, searcher: Searcher) -> None:
        self._searcher = searcher
        self._after = min(settings.steps, -(-QUESTIONS // settings.batch_size))
        self._beams = {"answer_in_beam": settings.retriever_beam, "answer_in_reader": settings.reader_beam}
        self._values: dict[str, list[float]] = {name: [] for name in self._beams}
        self._asked = settings.batch_size * self._after

    def before_step(self, step: int) -> Mapping[str, float]:
        """Return the learned numbers of the searcher."""
        return self._searcher.learnt()

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take the metrics of a step, and warn once if almost no question has an answer in reach."""
        self._judge(line)
        return {}

    def _judge(self, line: Mapping[str, Any]) -> None:
        for name, values in self._values.items():
            values.append(float(line[name]))
        if len(self._values["answer_in_beam"]) != self._after:
            return
        shares = {name: sum(values) / len(values) for name, values in self._values.items()}
        scarce = [name for name in self._beams if shares[name] < ALMOST_NONE]
        if scarce:
            name = scarce[0]
            warn(
                f"finetune: {shares[name]:.1%} of the first {self._asked} questions have an answer in the {self._beams[name]} "
                f"blocks that are {'retrieved' if name == 'answer_in_beam' else 'read'}, so there is almost nothing to learn. "
                + ADVICE[name]
            )


ADVICE = {
    "answer_in_beam": "Check that blocks, index and questions belong together: `realmctl eval-em --retrieval bm25` says how many "
    "answers BM25 finds. If it finds many, raise --retriever-beam, or begin with a retriever that ict-init or pretrain trained. If "
    "not, the corpus has no answers, or --regex-answers is wrong for this file.",
    "answer_in_reader": "Raise --reader-beam, or train the retriever first (ict-init, pretrain).",
}
