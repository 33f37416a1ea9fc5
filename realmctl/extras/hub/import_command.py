"""`realmctl import`: make artifacts of published checkpoints."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Literal

from realmctl.artifacts import catalogue
from realmctl.errors import ConfigError
from realmctl.pipeline import InWorkspace, Show, argument, flag_of, help_texts, output, reads, runtime, setting
from realmctl.pipeline import source as from_outside
from realmctl.pipeline.fields import MOST_WORKERS

ENCODERS = "Encoders of other projects"


class Import(InWorkspace):
    """Make artifacts of a REALM checkpoint, a retriever of an encoder, or blocks and embeddings of a table.

    Of REALM's checkpoints, an embedder or a scorer becomes a retriever, an encoder an encoder, and a reader a
    span-reader. An open-QA checkpoint becomes blocks and a qa-model.

    Encoders are folders of sentence-transformers, model2vec, Contriever, DPR and plain encoders of the families BERT,
    RoBERTa, XLM-R, CamemBERT, MPNet, ModernBERT, DistilBERT, Qwen3, Gemma, T5 and more. No code of a folder is executed.

    A Parquet file with the columns id, text and vector, as `export --form parquet` writes it, becomes blocks and embeddings.
    """

    computes = True

    source: str = argument(
        "Folder or hub id of a REALM checkpoint or of an encoder, or a Parquet file of texts and vectors."
    )
    tokenizer: str | None = from_outside(
        "Folder or hub id of a tokenizer, if the checkpoint has none.", default=None, hub=True, advanced=True
    )
    titles: Path | None = from_outside(
        "Open QA: text file with the title of one block on each line.", default=None, advanced=True
    )
    block_records: Path | None = from_outside(
        "Open QA: block_records.npy, if the checkpoint has none.", default=None, advanced=True
    )
    retriever: Path | None = reads(
        "retriever",
        help="Open QA: the imported embedder that made the index of the checkpoint. Table: the retriever that made its vectors.",
        explicit_only=True,
        default=None,
        advanced=True,
    )
    block_encoder: str | None = from_outside(
        "Folder or hub id of the block encoder, if SOURCE encodes queries alone.",
        default=None,
        hub=True,
        panel=ENCODERS,
    )
    pooling: Literal["pooler", "cls", "mean", "max", "lasttoken", "weightedmean"] | None = setting(
        "How states become one vector, for a plain encoder. Other folders say it themselves.",
        default=None,
        panel=ENCODERS,
    )
    normalize: bool | None = setting(
        "Give vectors length 1. Default: as the folder says.", default=None, panel=ENCODERS
    )
    scale: float | None = setting(
        "Factor of the inner products: the inverse of a temperature. Default: 1.",
        default=None,
        at_least=1e-6,
        at_most=1e6,
        panel=ENCODERS,
    )
    query_prefix: str | None = setting(
        "Text before each query. Default: the prompt in the folder.", default=None, panel=ENCODERS, advanced=True
    )
    block_prefix: str | None = setting(
        "Text before each block. Default: the prompt in the folder.", default=None, panel=ENCODERS, advanced=True
    )
    block_form: Literal["pair", "separated", "joined"] | None = setting(
        "Form of a block. joined: title and body as one text. separated: with [SEP] between them, DPR's. pair: the same in two segments. "
        "Default: separated for DPR, joined for others.",
        default=None,
        panel=ENCODERS,
        advanced=True,
    )
    block_length: int | None = setting(
        "Tokens of a block that are read. Default: 288, or what the encoder can read.",
        default=None,
        panel=ENCODERS,
        advanced=True,
    )
    truncate_dim: int | None = setting(
        "How many numbers of a vector are used, for an encoder that was trained for it (Matryoshka). Default: all, or as the folder says.",
        default=None,
        at_least=1,
        panel=ENCODERS,
        advanced=True,
    )
    workers: int = runtime(help_texts.WORKERS, default=0, at_least=0, at_most=MOST_WORKERS)
    out: Path | None = output(help_texts.OUT, default=None, short="-o")

    def run(self, show: Show) -> None:
        from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
        from realmctl.extras.hub.imports.table import import_table, is_table
        from realmctl.imports.encoder_retriever import EncoderSettings

        settings = EncoderSettings(
            pooling=self.pooling,
            normalize=self.normalize,
            scale=self.scale,
            query_prefix=self.query_prefix,
            block_prefix=self.block_prefix,
            block_form=self.block_form,
            block_length=self.block_length,
            truncate_dim=self.truncate_dim,
        )
        extras = ImportExtras(
            self.tokenizer, self.block_records, self.titles, self.retriever, self.block_encoder, settings
        )
        if is_table(Path(self.source)):
            self._only_of_tables()
            artifacts = import_table(Path(self.source), self.retriever, self.workspace)
        else:
            artifacts = import_checkpoint(self.source, self.workspace, extras, self.workers, self.out)
        made = {kind: catalogue.summary(artifact) for kind, artifact in artifacts.items()}
        show({"made": made}, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))

    def _only_of_tables(self) -> None:
        """Raise ConfigError for an option that says nothing of a table."""
        others = [item for item in fields(self) if item.name not in ("source", "retriever", "workspace", "workers")]
        if given := [flag_of(item.name) for item in others if getattr(self, item.name) not in (item.default, None)]:
            raise ConfigError(
                f"{self.source} is a table of texts and vectors, and {', '.join(given)} is not for one. Leave it out."
            )
