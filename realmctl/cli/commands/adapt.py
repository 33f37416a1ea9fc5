"""`realmctl adapt`: adapt a retriever to documents without labels, and make them searchable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import BadFiles, Json, Language, Workspace, computes, path
from realmctl.pipeline.fields import MOST


@computes
def adapt(
    documents: Annotated[
        Path, typer.Argument(parser=path, help="Folder or file of documents, in any format that `chunk` reads.")
    ],
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Folder or hub id of a sentence encoder. Default: all-MiniLM-L6-v2, from the extra `encoder` or from the hub; for a language "
            "other than English a multilingual MiniLM of the hub."
        ),
    ] = None,
    language: Language = "auto",
    bad_files: BadFiles = "fail",
    minutes: Annotated[
        float,
        typer.Option(
            min=0.01, max=1e6, help="Minutes in all. Training has what blocks, measurements and vectors leave."
        ),
    ] = 30,
    max_wordpieces: Annotated[
        int, typer.Option(min=1, max=MOST, help="Longest block in wordpieces, with its title and special tokens.")
    ] = 128,
    sentences: Annotated[
        int,
        typer.Option(min=2, max=MOST, help="Sentences that are cut out of their blocks, to measure without labels."),
    ] = 1000,
    bm25_stemmer: Annotated[
        str | None,
        typer.Option(
            help="Snowball stemmer for BM25 beside the retriever. Default: that of the documents' language; where there is none BM25 compares "
            "wordpieces."
        ),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Adapt a sentence encoder to documents without labels, and make them searchable. The encoder is kept where no gain is shown.

    The same as `import`, `chunk`, `ict-init`, `eval-cloze`, `embed` and `build-index`. It ends by saying what was gained and how to
    search. After an interruption the same command goes on; a second run finds everything made.
    """
    from realmctl.shortcuts import adapt as shortcut

    found = shortcut.adapt(
        documents,
        encoder,
        workspace,
        language=language,
        bad_files=bad_files,
        minutes=minutes,
        max_wordpieces=max_wordpieces,
        sentences=sentences,
        bm25_stemmer=bm25_stemmer,
    )
    print_result(found, json, shortcut.text_of)
