"""`realmctl index-docs`: make a folder of documents searchable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realmctl import log
from realmctl.cli.invoke import print_result
from realmctl.cli.options import BadFiles, Json, Language, Workspace, computes, path
from realmctl.pipeline.fields import MOST


@computes
def index_docs(
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
    max_wordpieces: Annotated[
        int, typer.Option(min=1, max=MOST, help="Longest block in wordpieces, with its title and special tokens.")
    ] = 128,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Make documents searchable with an imported encoder: blocks, their vectors and an index, without training.

    The same as `import`, `chunk`, `embed` and `build-index`. After an interruption the same command goes on; a second run finds
    everything made, and after documents changed it embeds what changed. Then `realmctl search` searches.
    """
    from realmctl.shortcuts.shipped import default_encoder, left_out, left_out_text, run_shipped, search_command

    start = encoder or default_encoder([documents], language)
    variables = {
        "documents": str(documents),
        "language": language,
        "bad_files": bad_files,
        "max_wordpieces": str(max_wordpieces),
    }
    with log.one_bar("index-docs"):
        made = run_shipped("index-docs", workspace, start, variables)
    counts, vectors = made["blocks"].metrics, made["embeddings"].metrics
    print_result(
        {
            "documents": counts["documents"],
            "blocks": counts["blocks"],
            "left_out": left_out(made["blocks"]),
            "embedded": vectors.get("embedded", counts["blocks"]),
            "made": {name: str(artifact.path) for name, artifact in made.items()},
            "search": search_command(made["index"], workspace),
        },
        json,
        lambda found: (
            f"{found['blocks']:,} blocks of {found['documents']:,} documents can be searched{left_out_text(found['left_out'])}."
            + _reused_text(found["embedded"], found["blocks"])
            + f" Now: {found['search']}"
        ),
    )


def _reused_text(embedded: int, blocks: int) -> str:
    return f" Vectors: {embedded:,} embedded, {blocks - embedded:,} taken over." if embedded < blocks else ""
