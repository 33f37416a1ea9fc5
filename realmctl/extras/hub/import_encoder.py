"""`realmctl import`: make a retriever of an encoder of another project."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from realmctl.artifacts import Origin, Writer
from realmctl.errors import ConfigError
from realmctl.pipeline import Stage, setting
from realmctl.pipeline import source as from_outside

if TYPE_CHECKING:
    from realmctl.imports.encoder_retriever import EncoderImport


class Import(Stage):
    """Make a retriever of an encoder of another project.

    Encoders are folders of sentence-transformers, model2vec, Contriever, DPR and plain encoders of the families BERT,
    RoBERTa, XLM-R, CamemBERT, MPNet, ModernBERT, DistilBERT, Qwen3, Gemma, T5 and more. No code of a folder is executed.

    import-realm reads REALM's checkpoints, and import-table a table of texts and vectors.
    """

    makes = "retriever"
    headline = ("width", "wordpieces")

    source: str = from_outside("Folder or hub id of an encoder.", positional=True, hub=True)
    tokenizer: str | None = from_outside(
        "Folder or hub id of a tokenizer, if the encoder has none.", default=None, hub=True, advanced=True
    )
    block_encoder: str | None = from_outside(
        "Folder or hub id of the block encoder, if SOURCE encodes queries alone.", default=None, hub=True
    )
    pooling: Literal["pooler", "cls", "mean", "max", "lasttoken", "weightedmean"] | None = setting(
        "How states become one vector, for a plain encoder. Other folders say it themselves.", default=None
    )
    normalize: bool | None = setting("Give vectors length 1. Default: as the folder says.", default=None)
    scale: float | None = setting(
        "Factor of the inner products: the inverse of a temperature. Default: 1.",
        default=None,
        at_least=1e-6,
        at_most=1e6,
    )
    query_prefix: str | None = setting(
        "Text before each query. Default: the prompt in the folder.", default=None, advanced=True
    )
    block_prefix: str | None = setting(
        "Text before each block. Default: the prompt in the folder.", default=None, advanced=True
    )
    block_form: Literal["pair", "separated", "joined"] | None = setting(
        "Form of a block. joined: title and body as one text. separated: with [SEP] between them, DPR's. pair: the same in two segments. "
        "Default: separated for DPR, joined for others.",
        default=None,
        advanced=True,
    )
    block_length: int | None = setting(
        "Tokens of a block that are read. Default: 288, or what the encoder can read.",
        default=None,
        at_least=1,
        advanced=True,
    )
    truncate_dim: int | None = setting(
        "How many numbers of a vector are used, for an encoder that was trained for it (Matryoshka). Default: all, or as the folder says.",
        default=None,
        at_least=1,
        advanced=True,
    )

    @classmethod
    def command(cls) -> str:
        """`import` is a word of Python, and no name of a file."""
        return "import"

    def check(self) -> None:
        from realmctl.extras.hub.imports.table import is_table
        from realmctl.imports.encoder_folder import encoder_kind

        folder = Path(self.source)
        if is_table(folder):
            raise ConfigError(f"{folder} is a table of texts and vectors. Use `realmctl import-table`.")
        if encoder_kind(folder) is None:
            from realmctl.extras.hub.imports.checkpoint import open_checkpoint

            raise ConfigError(
                f"{folder} is a REALM {open_checkpoint(folder).kind}, no encoder of sentences. Use `realmctl import-realm`."
            )

    @cached_property
    def _read(self) -> EncoderImport:
        from realmctl.imports.encoder_retriever import EncoderSettings, read_encoder

        block, words = (Path(each) if each else None for each in (self.block_encoder, self.tokenizer))
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
        return read_encoder(Path(self.source), block, words, settings)

    def origin(self) -> Origin:
        return self._read.origin()

    def run(self, out: Writer) -> Mapping[str, object]:
        return self._read.write(out)
