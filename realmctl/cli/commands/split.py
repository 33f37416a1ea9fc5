"""`realmctl split`: split questions into training and dev."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.artifacts.place import require_place
from realmctl.cli.input_files import on_disk
from realmctl.cli.invoke import print_result
from realmctl.cli.options import AnswerField, Json, RegexAnswers, path
from realmctl.pipeline.fields import MOST


def split(
    questions: Annotated[list[Path], typer.Argument(parser=path, help="Question files; together they are one set.")],
    train: Annotated[Path, typer.Option(parser=path, help="File to write: training questions, as JSON lines.")],
    dev: Annotated[Path, typer.Option(parser=path, help="File to write: dev questions, as JSON lines.")],
    max_answer_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST, help="Drop answers with more tokens, and questions without an answer left. NQ-open: 5."
        ),
    ] = None,
    regex_answers: RegexAnswers = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    """Split questions into training and dev as ORQA does: by FarmHash, with a tenth for dev."""
    from realmctl.questions import splits

    require_place(train, f"--train {train}")
    require_place(dev, f"--dev {dev}")
    with on_disk(*questions) as sources:
        counts = splits.split(
            sources, train, dev, max_answer_tokens=max_answer_tokens, is_regex=regex_answers, answer_field=answer_field
        )
    print_result(counts, json, splits.split_text)
