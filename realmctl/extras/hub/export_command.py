"""`realmctl export`: write an artifact in a form that other libraries load."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import ConfigError, require_package
from realmctl.log import say
from realmctl.pipeline import Command, Settings, Show, argument, flag_of, reads, resolve, setting, source

CARD = "Model card"
MODEL_FORMS = {
    "transformers": {"encoder", "reader", "span-reader", "retriever"},
    "sentence-transformers": {"retriever"},
}
"""{form of models: kinds of artifacts}. A retriever's folder is one of both."""


class ModelSettings(Settings):
    """What an exported model can have, and nothing else."""

    side: Literal["query", "block"] | None = setting(
        "Tower to export from a retriever with separate towers.", default=None
    )
    push: str | None = setting("Upload the model to this repository of the hub too: OWNER/NAME.", default=None)
    projection: Literal["exact", "fold", "none"] = setting(
        "What follows the pooling of a retriever. exact: our embeddings. fold: modules that text-embeddings-inference knows, with the same rankings. "
        "none: nothing, for servers that only pool; the retriever must have no head.",
        default="exact",
    )
    onnx: bool = setting("Write a retriever with its head as ONNX too, in float32 and in int8.", default=False)
    license: str | None = setting("License of the model, such as apache-2.0.", default=None, panel=CARD, advanced=True)
    language: tuple[str, ...] = setting("Language code, such as en. Repeatable.", default=(), panel=CARD, advanced=True)
    base_model: str | None = setting(
        "Hub id of the model that the training started from.", default=None, panel=CARD, advanced=True
    )
    dataset: tuple[str, ...] = setting(
        "Hub id or name of training data. Repeatable.", default=(), panel=CARD, advanced=True
    )
    scores: tuple[Path, ...] = source(
        "Scores of eval-em or eval-run, for the model-index. Repeatable.", default=(), panel=CARD, advanced=True
    )

    def of_models(self) -> list[str]:
        """Return the options of models that were given."""
        return [flag_of(item.name) for item in fields(ModelSettings) if getattr(self, item.name) != item.default]


class Export(ModelSettings, Command):
    """Write a folder that transformers' AutoModel loads, with a model card. sentence-transformers loads a retriever's too.

    Blocks become DPR's psgs TSV. Embeddings become an array with ids, for faiss, a Parquet table with texts and fields for vector databases, or
    Tevatron's pickle. Scores become
    DPR's training files for the reader (retrieved blocks) or the retriever (positives and hard negatives). A ranking becomes a
    TREC run. Negatives become triplets for sentence-transformers. A cross-encoder becomes a folder that its CrossEncoder loads.
    """

    artifact: Path = argument(
        "A retriever, encoder or reader, a model for its retriever, blocks, embeddings, a ranking, scores, negatives or a cross-encoder."
    )
    folder: Path = argument("Folder or file to write. It must not exist.")
    form: (
        Literal[
            "transformers",
            "sentence-transformers",
            "psgs",
            "vectors",
            "parquet",
            "tevatron",
            "trec",
            "dpr-reader",
            "dpr-retriever",
            "triplets",
            "cross-encoder",
        ]
        | None
    ) = setting(
        "Form of an encoder or reader (transformers), a retriever (sentence-transformers), blocks (psgs), embeddings (vectors, tevatron; parquet with texts and fields), a ranking "
        "(trec), scores (dpr-reader, dpr-retriever), negatives (triplets) or a cross-encoder. Default: the first.",
        default=None,
    )
    blocks: Path | None = reads(
        "blocks", help="Blocks of the embeddings, whose ids are written.", explicit_only=True, default=None
    )

    def run(self, show: Show) -> None:
        from realmctl.extras.hub.exports.forms import default_form, export_form

        opened, form = open_artifact(self.artifact), self.form
        if form is None or form == "transformers" or form == "sentence-transformers":
            chosen = default_form(opened.kind)
        else:
            chosen = form
        if form and form in MODEL_FORMS and (chosen or not MODEL_FORMS[form] & {opened.kind, *opened.manifest.parts}):
            kinds = " or ".join(sorted(MODEL_FORMS[form]))
            raise ConfigError(
                f"--form {form}: this form is made of {kinds}, and {opened} is {opened.kind}. Leave it out."
            )
        if chosen is None:
            self._export_model(opened, show)
            return
        for flag in self.of_models():
            raise ConfigError(f"{flag} is for models, and {opened} is of kind {opened.kind}. Leave it out.")
        of_blocks = resolve(self.blocks, ("blocks",), "--blocks") if self.blocks else None
        show(export_form(opened, self.folder, chosen, of_blocks), lambda value: str(value["path"]))

    def _export_model(self, opened: Artifact, show: Show) -> None:
        from realmctl.extras.hub.exports.hub_export import export as export_model
        from realmctl.extras.hub.exports.model_card import SCORED, CardFacts
        from realmctl.extras.hub.exports.push import check_repository, push

        if self.blocks:
            raise ConfigError(f"--blocks is for embeddings, and {opened} is of kind {opened.kind}. Leave it out.")
        if self.push:
            check_repository(self.push)
        facts = CardFacts(
            license=self.license,
            language=self.language,
            base_model=self.base_model,
            datasets=self.dataset,
            scores=[resolve(each, tuple(SCORED), "--scores") for each in self.scores],
        )
        if self.onnx:
            for package in ("onnx", "onnxscript", "onnxruntime"):
                require_package(package, "onnx", "export --onnx")
        made = export_model(self.artifact, self.folder, self.side, self.push, facts, self.projection, self.onnx)
        if "served_by" in made:
            say(f"export: these vectors are served by {', '.join(made['served_by'])}")
        if "int8_cosine" in made:
            say(
                f"export: the least cosine between the int8 and the float32 embeddings of random texts is {made['int8_cosine']:.4f}"
            )
        if self.push:
            made["pushed_to"] = push(self.folder, self.push)
        show(made, lambda value: str(value["path"]))
