"""The stage behind `realmctl import` for encoders of other projects: a folder, or two, as a retriever."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.log import warn
from realmctl.pipeline import Stage, setting, source

if TYPE_CHECKING:
    from realmctl.convert.imports.opened_encoder import OpenedEncoder
    from realmctl.models.retriever import Retriever
    from realmctl.models.towers.layout import Prefix
    from realmctl.tokens.wordpiece import WordPiece

BLOCK_LENGTH = 288
"""Tokens of a block, as `chunk` cuts them by default."""


class ImportEncoderAsRetriever(Stage):
    """Import a sentence-transformers, Contriever, DPR or BERT encoder as a retriever."""

    makes = "retriever"
    headline = ("width", "wordpieces")

    encoder: Path = source("Folder of the encoder, or of the query encoder of two.")
    block_encoder: Path | None = source("Folder of the block encoder of two.", default=None)
    tokenizer: Path | None = source("Folder of the tokenizer. Default: that of the encoder.", default=None)
    pooling: Literal["pooler", "cls", "mean"] | None = setting("Pooling of a plain BERT.", default=None)
    normalize: bool | None = setting("Give vectors length 1. Default: as the folder says.", default=None)
    scale: float = setting("Factor of the inner products.", default=1.0)
    query_prefix: str | None = setting("Text before each query. Default: the prompt of the folder.", default=None)
    block_prefix: str | None = setting("Text before each block. Default: the prompt of the folder.", default=None)
    block_form: Literal["pair", "separated", "joined"] | None = setting(
        "Form of blocks. Default: separated for DPR, joined for others.", default=None
    )
    block_length: int | None = setting("Tokens of a block that are read.", default=None)

    @classmethod
    def command(cls) -> str:
        return "import"

    def check(self) -> None:
        if not 0 < self.scale < float("inf"):
            raise ConfigError(
                f"--scale {self.scale:g} must be above 0. It is the inverse of a temperature, such as 20."
            )
        self._retriever()

    def run(self, out: Writer) -> Mapping[str, Any]:
        retriever, words = self._retriever()
        last = retriever.query_tower.settings()["head"][-1:]
        if self.scale == 1 and last and last[0]["kind"] == "normalize":
            warn(
                "these vectors have length 1, so p(z|x) is a softmax over cosines and almost flat. Before training with it, "
                "import with --scale, the inverse of the encoder's temperature, such as 20"
            )
        retriever.save(out.path)
        words.save(out.path / "tokenizer")
        return {"wordpieces": len(words), "width": retriever.projection, "towers": retriever.towers}

    def _retriever(self) -> tuple[Retriever, WordPiece]:
        from realmctl.convert.imports.opened_encoder import open_encoder, require_sides
        from realmctl.models.retriever import Retriever
        from realmctl.models.towers.layout import InputLayout

        query = open_encoder(self.encoder, self.pooling, self.normalize, self.scale)
        other = None
        if self.block_encoder is not None:
            other = open_encoder(self.block_encoder, self.pooling, self.normalize, self.scale)
        require_sides(query, other)
        block, words = other or query, self._wordpieces(query, other)
        layout = InputLayout(
            self.block_form or block.form,
            _prefix(words, query.query_prompt if self.query_prefix is None else self.query_prefix, "--query-prefix"),
            _prefix(words, block.block_prompt if self.block_prefix is None else self.block_prefix, "--block-prefix"),
        )
        if layout.blocks == "pair" and block.tower.bert.config.type_vocab_size < 2:
            raise ConfigError(
                f"--block-form pair: {self.block_encoder or self.encoder} knows one segment. Use another form."
            )
        length = self.block_length or min(block.max_length, BLOCK_LENGTH + len(layout.block_prefix.ids))
        if not layout.extra_tokens < length <= block.tower.bert.config.max_position_embeddings:
            raise ConfigError(
                f"--block-length {length} must be above {layout.extra_tokens} and at most the "
                f"{block.tower.bert.config.max_position_embeddings} positions of the encoder."
            )
        return Retriever(
            query.tower,
            block.tower,
            query_length=query.max_length,
            block_length=length,
            pooling=query.tower.pooling,
            layout=layout,
        ).eval(), words

    def _wordpieces(self, query: OpenedEncoder, block: OpenedEncoder | None) -> WordPiece:
        """Return the tokenizer. Raises MismatchError when it does not fit an encoder, or the two have different ones."""
        from realmctl.convert.imports.checkpoint import tokenizer_files
        from realmctl.tokens import wordpiece

        folder = tokenizer_files(self.tokenizer or query.folder)[0].parent
        words, rows = wordpiece.load(folder), int(query.tower.bert.config.vocab_size)
        if max(words.vocabulary.values()) >= rows:
            raise MismatchError(
                f"The tokenizer in {folder} has {len(words)} wordpieces, and the encoder {self.encoder} has {rows}. Name the "
                "tokenizer that it was trained with: --tokenizer FOLDER."
            )
        if query.lowercase and not words.lowercase:
            raise InputError(
                f"{self.encoder} puts text in lower case before its tokenizer, which distinguishes case. This cannot be "
                "imported. Save the encoder with a tokenizer that does it (do_lower_case)."
            )
        if block and self.tokenizer is None:
            other = wordpiece.load(tokenizer_files(block.folder)[0].parent)
            if other.vocabulary != words.vocabulary:
                raise MismatchError(
                    f"{self.encoder} and {self.block_encoder} have different vocabularies. Name two encoders that were "
                    "trained together, with one vocabulary."
                )
        return words


def _prefix(words: WordPiece, text: str, flag: str) -> Prefix:
    """Return a prefix with its wordpieces, which must be the same whatever follows."""
    from realmctl.models.towers.layout import MAX_PREFIX, Prefix

    if text and text[-1].isalnum():
        raise ConfigError(
            f"{flag} {text!r} ends in a letter or digit, so it would run into the text. End it in a space."
        )
    ids = tuple(words.ids(text).tolist())
    if len(ids) > MAX_PREFIX:
        raise ConfigError(f"{flag} has {len(ids)} wordpieces. Use at most {MAX_PREFIX}.")
    return Prefix(text, ids)
