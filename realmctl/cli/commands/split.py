"""`realmctl split`: training and dev questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.input_files import on_disk
from realmctl.cli.invoke import emit
from realmctl.cli.options import AnswerField, Json, RegexAnswers, path


def split(
    questions: Annotated[list[Path], typer.Argument(parser=path, help="Question files, taken as one set.")],
    train: Annotated[Path, typer.Option(parser=path, help="JSON lines to write: training questions.")],
    dev: Annotated[Path, typer.Option(parser=path, help="JSON lines to write: dev questions.")],
    max_answer_tokens: Annotated[
        int | None, typer.Option(min=1, help="Drop longer answers, and questions left without one; NQ-open: 5.")
    ] = None,
    regex_answers: RegexAnswers = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    """Split questions into training and dev as ORQA does, by FarmHash: a tenth is dev."""
    from realmctl.text.qa import splits

    with on_disk(*questions) as sources:
        counts = splits.split(
            sources, train, dev, max_answer_tokens=max_answer_tokens, is_regex=regex_answers, answer_field=answer_field
        )
    emit(counts, json, splits.split_text)
