"""`realmctl ask`: answer one question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path, text


def ask(
    question: Annotated[str, typer.Argument(parser=text, help="A question.")],
    qa_model: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/qa-model.")] = None,
    blocks: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/blocks.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of answers to print.")] = 3,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Answer a question. Each answer comes with its block and the retrieval probability p(z|x) of that block."""
    from realmctl.retrieval.answering.asking import answers_text, ask

    answers = ask(question, qa_model or workspace / "qa-model", blocks or workspace / "blocks", top)
    print_result(answers, json, answers_text)
