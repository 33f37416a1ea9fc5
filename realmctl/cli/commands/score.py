"""`realmctl score`: score a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.artifacts import catalogue
from realmctl.cli.input_files import on_disk
from realmctl.cli.invoke import emit
from realmctl.cli.options import AnswerField, Json, RegexAnswers, path


def score(
    predictions: Annotated[
        Path, typer.Argument(parser=path, help="JSON lines of question and prediction, or a scores artifact.")
    ],
    references: Annotated[Path, typer.Argument(parser=path, help="Questions with answers, as eval-em reads them.")],
    scorer: Annotated[
        Literal["auto", "orqa", "squad", "dpr", "regex-match", "regex-search"],
        typer.Option(help="What `em` means; auto is orqa, and regex-match where answers are regular expressions."),
    ] = "auto",
    all_scorers: Annotated[
        bool, typer.Option("--all-scorers", help="List the questions that the scorers disagree on.")
    ] = False,
    regex_answers: RegexAnswers = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    """Score a file of predictions: exact match under every scorer that suits the answers, no model needed."""
    from realmctl.text.qa import scoring

    with on_disk(predictions, references) as (predicted, asked):
        scores, judged = scoring.score(
            catalogue.predictions_of(predicted), asked, scorer=scorer, is_regex=regex_answers, answer_field=answer_field
        )
    if all_scorers:
        scores["disagreements"] = [each.record() for each in judged if each.disagrees]
    emit(scores, json, scoring.scores_text)
