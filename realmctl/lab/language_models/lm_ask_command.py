"""`realmctl lm-ask`: a language model answers one question with the blocks that the workspace's search finds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli import completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, computes, path, text
from realmctl.lab.language_models.options import Reading
from realmctl.pipeline.fields import MOST


@computes
def lm_ask(
    question: Annotated[str, typer.Argument(parser=text, help="A question.")],
    reader_lm: Annotated[
        str,
        typer.Option(
            parser=text, help="Language model that reads: a folder or a hub id, of GPT-2's kind (causal) or of T5's."
        ),
    ],
    blocks: Annotated[
        Path | None,
        typer.Option(parser=path, autocompletion=completion.artifacts("blocks"), help="Default: <workspace>/blocks."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(parser=path, help="Index to search. Default: the workspace's, or else BM25."),
    ] = None,
    top: Annotated[int, typer.Option("--top", "-k", min=1, max=MOST, help="Number of answers to print.")] = 3,
    reading: Annotated[
        Reading,
        typer.Option(
            help="mixed: each block in a prompt of its own, and the answers mixed by p(z|x). together: all blocks in one prompt."
        ),
    ] = "mixed",
    prompt: Annotated[
        str | None,
        typer.Option(parser=text, help="Text with {question} at the question's place, after the block."),
    ] = None,
    block_prompt: Annotated[
        str | None,
        typer.Option(parser=text, help="Text with {title} and {block}, which stands before the prompt."),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Answer a question by a language model as it is, without fine-tuning. Each answer comes with its block and p(z|x)."""
    from realmctl.lab.language_models.lm_asking import ask_language_model
    from realmctl.lab.language_models.reading_model import ReadingOptions

    options = ReadingOptions(reading=reading, prompt=prompt, block_prompt=block_prompt)
    found = ask_language_model(question, reader_lm, workspace, top, options, blocks=blocks, index=index)
    print_result(found.record(), json, lambda _: str(found))
