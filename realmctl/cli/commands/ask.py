"""`realmctl ask`: answer one question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli import completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, computes, path, text
from realmctl.pipeline.fields import MOST
from realmctl.pipeline.workspace import default_series


@computes
def ask(
    question: Annotated[str, typer.Argument(parser=text, help="A question.")],
    qa_model: Annotated[
        Path | None,
        typer.Option(
            parser=path, autocompletion=completion.artifacts("qa-model"), help="Default: <workspace>/qa-model."
        ),
    ] = None,
    blocks: Annotated[
        Path | None,
        typer.Option(parser=path, autocompletion=completion.artifacts("blocks"), help="Default: <workspace>/blocks."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            help="Index to search. Default: the qa-model's own, or the newest beside the blocks that fits newer blocks.",
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", "-k", min=1, max=MOST, help="Number of answers to print.")] = 3,
    without: Annotated[
        list[str] | None,
        typer.Option(
            parser=text,
            help="Answer again without this block: its id, or the id or title of a document. Repeatable.",
        ),
    ] = None,
    probe: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            help="Model that says how probable the answer is without any document: pre-trained, or a closed-book qa-model.",
        ),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Answer a question. Each answer comes with its block and the retrieval probability p(z|x) of that block.

    With --without, the question is answered again without some blocks, and the probability of the former answer is printed before and after.
    """
    from realmctl.retrieval.answering.asking import ask

    asked = ask(
        question,
        qa_model or default_series("ask", "--qa-model", "qa-model", workspace / "qa-model"),
        blocks or workspace / "blocks",
        top,
        index=index,
        without=without or (),
        probe=probe,
    )
    print_result(asked.record(), json, lambda _: str(asked))
