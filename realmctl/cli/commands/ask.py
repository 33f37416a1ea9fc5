"""`realmctl ask`: answer one question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, Workspace, path


def ask(
    question: Annotated[str, typer.Argument(help="A question.")],
    qa_model: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/qa-model.")] = None,
    blocks: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/blocks.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Answers to print.")] = 3,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Answer a question, with the evidence it was read from and p(z|x)."""
    from realmctl.retrieval.answering.asking import answers_text, ask

    answers = ask(question, qa_model or workspace / "qa-model", blocks or workspace / "blocks", top)
    emit(answers, json, answers_text)
