"""`realmctl eval-beir`: measure a retriever on test collections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Language, Workspace, computes, path
from realmctl.errors import require_package
from realmctl.index.names import INDEX_TYPES
from realmctl.pipeline import help_texts, resolve
from realmctl.pipeline.comparing import aligned
from realmctl.pipeline.fields import MOST
from realmctl.retrieval.names import search_methods


@computes
def eval_beir(
    datasets: Annotated[
        list[str],
        typer.Argument(
            help="BEIR folders, or folders of such; ir:NAME of ir_datasets; hf:OWNER/NAME of the hub; nanobeir, its thirteen sets."
        ),
    ],
    retriever: Annotated[
        Path | None, typer.Option(parser=path, help="Retriever to measure, or a model. Default: --encoder.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Folder or hub id of a sentence encoder to measure. Default: all-MiniLM-L6-v2, from the extra `encoder` or from the hub; for a language "
            "other than English a multilingual MiniLM of the hub."
        ),
    ] = None,
    language: Language = "auto",
    method: Annotated[
        str, typer.Option(help="Method of the search, as of rank: dense, bm25 or hybrid, or that of a plug-in.")
    ] = "dense",
    bm25_stemmer: Annotated[str | None, typer.Option(help=help_texts.BM25_STEMMER)] = None,
    max_wordpieces: Annotated[
        int | None,
        typer.Option(
            min=32,
            max=MOST,
            help="Cut documents into blocks of at most as many wordpieces, and rank a document by its best block. Default: documents "
            "stay whole, and an encoder reads as much of the start as it can, as in published numbers.",
        ),
    ] = None,
    type: Annotated[str, typer.Option(help="Type of index, as of build-index.")] = "exact",
    measures: Annotated[
        str, typer.Option(help="Measures by their names in ir-measures, separated by spaces.")
    ] = "nDCG@10 AP R@100",
    split: Annotated[str, typer.Option(help="Split of the judgements, unless there is only one.")] = "test",
    form: Annotated[
        Literal["text", "csv"], typer.Option("--format", help="Form of the table; --json prints it as JSON.")
    ] = "text",
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Measure a retriever on test collections, as BEIR does, and print a table. The table is an artifact too.

    The same as `import`, `collect`, `chunk`, `embed`, `build-index`, `rank` and `eval-run` for each collection. After an interruption
    the same command goes on; a second run finds everything made. Of documents with the id of their query only relevant ones count.
    """
    from realmctl.extras.ir import beir_shortcut as beir
    from realmctl.extras.ir.ranking.measures import parsed
    from realmctl.shortcuts.shipped import default_encoder, imported_retriever

    if retriever and encoder:
        raise typer.BadParameter("name --retriever or --encoder, and not both", param_hint="--encoder")
    parsed(measures)
    for name, value, known in (("--method", method, search_methods()), ("--type", type, INDEX_TYPES.names())):
        if value not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.", param_hint=name)
    collections = beir.named_collections(datasets)
    if any(one.startswith("ir:") for one in collections.values()):
        require_package("ir_datasets", "ir", "eval-beir ir:NAME")
    measured_one = (
        resolve(retriever, ("retriever",), "--retriever")
        if retriever
        else imported_retriever(encoder or default_encoder([], language), workspace)
    )
    variables = {"language": language, "method": method, "type": type, "measures": measures}
    if bm25_stemmer:
        variables["bm25_stemmer"] = bm25_stemmer
    if max_wordpieces:
        variables |= {"keep_passages": "false", "max_wordpieces": str(max_wordpieces)}
    measured = [beir.measure(name, one, measured_one, workspace, split, variables) for name, one in collections.items()]
    made, lines = beir.make_table(measured, measured_one, workspace), beir.table(measured)
    print_result(
        {"path": str(made.path), "retriever": str(measured_one.path), "table": lines, "mean": made.metrics},
        json,
        lambda _: aligned(lines) if form == "text" else beir.table_csv(lines).rstrip("\n"),
    )
