"""`realmctl ask`: answer one question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli import completion
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, computes, path, text
from realmctl.errors import ConfigError
from realmctl.pipeline.fields import MOST, unused
from realmctl.pipeline.workspace import default_series
from realmctl.retrieval.answering.settings import Reading


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
    reader_lm: Annotated[
        str | None,
        typer.Option(
            parser=text,
            help="Language model that reads instead of a qa-model: a folder or a hub id, of GPT-2's kind or of T5's. --index, or else the workspace's "
            "index or BM25, finds the blocks.",
        ),
    ] = None,
    reading: Annotated[
        Reading,
        typer.Option(
            help="With --reader-lm: each block in a prompt of its own, and the answers mixed by p(z|x); or all blocks in one prompt.",
        ),
    ] = "mixed",
    prompt: Annotated[
        str | None,
        typer.Option(
            parser=text, help="With --reader-lm: text with {question} at the question's place, after the block."
        ),
    ] = None,
    block_prompt: Annotated[
        str | None,
        typer.Option(
            parser=text, help="With --reader-lm: text with {title} and {block}, which stands before the prompt."
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

    With --reader-lm a language model answers as it is, without fine-tuning. With --without, the question is answered again without some blocks, and the probability of the former answer is printed
    before and after.
    """
    from realmctl.lab.language_models.reading_model import ReadingOptions
    from realmctl.retrieval.answering.asking import ask, ask_language_model

    if reader_lm is not None:
        if flag := next(
            (f for f, v in (("--qa-model", qa_model), ("--without", without), ("--probe", probe)) if v), None
        ):
            raise ConfigError(f"{flag} is for a qa-model. Leave it out with --reader-lm.")
        options = ReadingOptions(reading=reading, prompt=prompt, block_prompt=block_prompt)
        found = ask_language_model(question, reader_lm, workspace, top, options, blocks=blocks, index=index)
        print_result(found.record(), json, lambda _: str(found))
        return
    of_reader = {"--reading": reading != "mixed", "--prompt": prompt, "--block-prompt": block_prompt}
    if flag := next((name for name, given in of_reader.items() if given), None):
        raise unused(flag, "--reader-lm")
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
