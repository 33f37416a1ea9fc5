"""`realmctl score`: score a file of predictions, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.artifacts import catalogue
from realmctl.cli.input_files import on_disk
from realmctl.cli.invoke import print_result
from realmctl.cli.options import AnswerField, Json, RegexAnswers, path
from realmctl.pipeline import help_texts
from realmctl.questions.scorers import Scorer


def score(
    predictions: Annotated[
        Path,
        typer.Argument(
            parser=path,
            help="JSON lines with question and prediction, SQuAD's object of ids and predictions, or a scores artifact.",
        ),
    ],
    references: Annotated[
        Path, typer.Argument(parser=path, help="Questions with answers, in any format that eval-em reads.")
    ],
    scorer: Annotated[Literal["auto", Scorer], typer.Option(help=help_texts.SCORER)] = "auto",
    all_scorers: Annotated[
        bool, typer.Option("--all-scorers", help="List the questions on which the scorers disagree.")
    ] = False,
    regex_answers: RegexAnswers = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    """Score a file of predictions: exact match with every scorer that fits the answers. No model is needed."""
    from realmctl.questions import scoring

    with on_disk(predictions, references) as (predicted, asked):
        scores, judged = scoring.score(
            catalogue.predictions_of(predicted), asked, scorer=scorer, is_regex=regex_answers, answer_field=answer_field
        )
    if all_scorers:
        scores["disagreements"] = [each.record() for each in judged if each.disagrees]
    print_result(scores, json, scoring.scores_text)
