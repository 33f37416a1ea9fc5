"""`realmctl score`: score a file of predictions, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.pipeline import Command, Show, argument, help_texts, setting
from realmctl.pipeline.sources import on_disk
from realmctl.questions.scorers import Scorer


class Score(Command):
    """Score a file of predictions: exact match with every scorer that fits the answers. No model is needed."""

    predictions: Path = argument(
        "JSON lines with question and prediction, SQuAD's object of ids and predictions, or a scores artifact."
    )
    references: Path = argument("Questions with answers, in any format that eval-em reads.")
    scorer: Literal["auto", Scorer] = setting(help_texts.SCORER, default="auto")
    all_scorers: bool = setting("List the questions on which the scorers disagree.", default=False)
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None)
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None)

    def run(self, show: Show) -> None:
        from realmctl.extras.score import predictions

        with on_disk(self.predictions, self.references) as (predicted, asked):
            scores, judged = predictions.score(
                predictions.predictions_of(predicted),
                asked,
                scorer=self.scorer,
                is_regex=self.regex_answers,
                answer_field=self.answer_field,
            )
        if self.all_scorers:
            scores["disagreements"] = [each.record() for each in judged if each.disagrees]
        show(scores, predictions.scores_text)
