"""`realmctl export`: write an artifact in a form that other libraries load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl.artifacts import open_artifact
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, path
from realmctl.errors import ConfigError, require_package
from realmctl.log import say
from realmctl.pipeline import resolve

CARD = "Model card"
MODEL_FORMS = {
    "transformers": {"encoder", "reader", "span-reader", "retriever"},
    "sentence-transformers": {"retriever"},
}
"""{form of models: kinds of artifacts}. A retriever's folder is one of both."""


def export(
    artifact: Annotated[
        Path,
        typer.Argument(
            parser=path,
            help="A retriever, encoder or reader, a model for its retriever, blocks, embeddings, a ranking, scores or negatives.",
        ),
    ],
    folder: Annotated[Path, typer.Argument(parser=path, help="Folder or file to write. It must not exist.")],
    side: Annotated[
        Literal["query", "block"] | None, typer.Option(help="Tower to export from a retriever with separate towers.")
    ] = None,
    form: Annotated[
        Literal[
            "transformers",
            "sentence-transformers",
            "psgs",
            "vectors",
            "tevatron",
            "trec",
            "dpr-reader",
            "dpr-retriever",
            "triplets",
        ]
        | None,
        typer.Option(
            help="Form of an encoder or reader (transformers), a retriever (sentence-transformers), blocks (psgs), embeddings (vectors, "
            "tevatron), a ranking (trec), scores (dpr-reader, dpr-retriever) or negatives (triplets). Default: the first.",
        ),
    ] = None,
    blocks: Annotated[
        Path | None, typer.Option(parser=path, help="Blocks of the embeddings, whose ids are written.")
    ] = None,
    push: Annotated[
        str | None, typer.Option(help="Upload the model to this repository of the hub too: OWNER/NAME.")
    ] = None,
    projection: Annotated[
        Literal["exact", "fold", "none"],
        typer.Option(
            help="What follows the pooling of a retriever. exact: our embeddings. fold: modules that text-embeddings-inference knows, "
            "with the same rankings. none: nothing, for servers that only pool; the retriever must have no head."
        ),
    ] = "exact",
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write a retriever with its head as ONNX too, in float32 and in int8.")
    ] = False,
    license: Annotated[
        str | None, typer.Option(rich_help_panel=CARD, help="License of the model, such as apache-2.0.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(rich_help_panel=CARD, help="Language code, such as en. Repeatable.")
    ] = None,
    base_model: Annotated[
        str | None, typer.Option(rich_help_panel=CARD, help="Hub id of the model that the training started from.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(rich_help_panel=CARD, help="Hub id or name of training data. Repeatable.")
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            parser=path, rich_help_panel=CARD, help="Scores of eval-em or eval-run, for the model-index. Repeatable."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a folder that transformers' AutoModel loads, with a model card. sentence-transformers loads a retriever's too.

    Blocks become DPR's psgs TSV. Embeddings become an array with ids, for faiss, or Tevatron's pickle. Scores become
    DPR's training files for the reader (retrieved blocks) or the retriever (positives and hard negatives). A ranking becomes a
    TREC run. Negatives become triplets for sentence-transformers.
    """
    from realmctl.extras.hub.exports.forms import default_form, export_form
    from realmctl.extras.hub.exports.hub_export import export as export_model
    from realmctl.extras.hub.exports.model_card import SCORED, CardFacts
    from realmctl.extras.hub.exports.push import check_repository
    from realmctl.extras.hub.exports.push import push as push_folder

    opened = open_artifact(artifact)
    chosen = (
        default_form(opened.kind) if form is None or form == "transformers" or form == "sentence-transformers" else form
    )
    if form and form in MODEL_FORMS and (chosen or not MODEL_FORMS[form] & {opened.kind, *opened.manifest.parts}):
        raise ConfigError(
            f"--form {form}: this form is made of {' or '.join(sorted(MODEL_FORMS[form]))}, and {opened} is {opened.kind}. Leave it out."
        )
    if chosen:
        of_models = {
            "--side": side,
            "--push": push,
            "--projection": projection != "exact",
            "--onnx": onnx,
            "--license": license,
            "--language": language,
            "--base-model": base_model,
            "--dataset": dataset,
            "--scores": scores,
        }
        if flag := next((name for name, given in of_models.items() if given), None):
            raise ConfigError(f"{flag} is for models, and {opened} is of kind {opened.kind}. Leave it out.")
        of_blocks = resolve(blocks, ("blocks",), "--blocks") if blocks else None
        print_result(export_form(opened, folder, chosen, of_blocks), json, lambda value: str(value["path"]))
        return
    if blocks:
        raise ConfigError(f"--blocks is for embeddings, and {opened} is of kind {opened.kind}. Leave it out.")
    if push:
        check_repository(push)
    facts = CardFacts(
        license=license,
        language=language or (),
        base_model=base_model,
        datasets=dataset or (),
        scores=[resolve(each, tuple(SCORED), "--scores") for each in scores or []],
    )
    if onnx:
        for package in ("onnx", "onnxscript", "onnxruntime"):
            require_package(package, "hub", "export --onnx")
    made = export_model(artifact, folder, side, push, facts, projection, onnx)
    if "served_by" in made:
        say(f"export: these vectors are served by {', '.join(made['served_by'])}")
    if "int8_cosine" in made:
        say(
            f"export: the least cosine between the int8 and the float32 embeddings of random texts is {made['int8_cosine']:.4f}"
        )
    if push:
        made["pushed_to"] = push_folder(folder, push)
    print_result(made, json, lambda value: value["path"])
