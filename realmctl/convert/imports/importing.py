"""`realmctl import`: turn a REALM checkpoint or an encoder, on this machine or on the hub, into artifacts.

All tensors are checked before anything is written, so that a bad checkpoint leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import BertForMaskedLM

from realmctl.artifacts import Artifact, Writer
from realmctl.convert.imports.checkpoint import HUB_FILES, Checkpoint, open_checkpoint, tokenizer_files
from realmctl.convert.imports.encoder_folder import encoder_kind
from realmctl.convert.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.convert.imports.imported import make_imported
from realmctl.convert.imports.open_qa import import_open_qa
from realmctl.convert.imports.realm_weights import bert_config, encoder_of, retriever_of, span_reader_of
from realmctl.errors import ConfigError, MismatchError
from realmctl.models.bert.files import save_masked_lm
from realmctl.models.retriever import Retriever
from realmctl.models.span_head import SpanReader
from realmctl.pipeline.sources import localise
from realmctl.tokens import wordpiece
from realmctl.tokens.wordpiece import WordPiece


@dataclass(frozen=True)
class ImportExtras:
    """What a checkpoint may lack or leave open.

    These are the tokenizer and, for open QA, the block records, the titles and the embedder. For an encoder they are
    the encoder of blocks, and how it is used.
    """

    tokenizer: str | None = None
    records: Path | None = None
    titles: Path | None = None
    retriever: Path | None = None
    block_encoder: str | None = None
    encoder: EncoderSettings = field(default_factory=EncoderSettings)


def import_checkpoint(source: str, out: Path, extras: ImportExtras, workers: int = 0) -> dict[str, Artifact]:
    """Import a checkpoint or an encoder. Return its artifacts by kind; each is in a series of that name below `out`.

    Raises ConfigError for an extra that the checkpoint does not need, InputError and MismatchError for one that does not fit.
    """

    def fetched(name: str, flag: str) -> Path:
        return Path(localise(name, (), True, flag, files=HUB_FILES))

    folder = fetched(source, "SOURCE")
    if encoder_kind(folder):
        _refuse_open_qa(extras, f"{folder} is an encoder")
        block_folder = fetched(extras.block_encoder, "--block-encoder") if extras.block_encoder else None
        tokenizer = fetched(extras.tokenizer, "--tokenizer") if extras.tokenizer else None
        return {"retriever": import_encoder(folder, block_folder, tokenizer, extras.encoder, out)}
    if given := [*extras.encoder.given(), *(["block_encoder"] if extras.block_encoder else [])]:
        flags = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ConfigError(f"{source} is not an encoder folder, and {flags} describe encoders. Leave them out.")
    named = localise(extras.tokenizer, (), True, "--tokenizer") if extras.tokenizer else folder
    checkpoint, files = open_checkpoint(folder), tokenizer_files(Path(named))
    if checkpoint.kind != "openqa":
        _refuse_open_qa(extras, f"{source} is a REALM {checkpoint.kind} without an index")
    words, rows = wordpiece.load(files[0].parent), bert_config(checkpoint).vocab_size
    if len(words) != rows or words.pad != 0:
        raise MismatchError(
            f"The tokenizer in {files[0].parent} has {len(words)} wordpieces, [PAD] being number {words.pad}, and the "
            f"checkpoint {checkpoint.folder} has {rows}, [PAD] being 0. Name the tokenizer it was trained with: "
            "--tokenizer bert-base-uncased."
        )
    if checkpoint.kind == "openqa":
        parts = {"records": extras.records, "titles": extras.titles, "retriever": extras.retriever}
        return import_open_qa(checkpoint, words, files, out, **parts, workers=workers)
    made = _import_model(checkpoint, words, files, out)
    return {made.kind: made}


def _refuse_open_qa(extras: ImportExtras, why: str) -> None:
    if extras.records or extras.titles or extras.retriever:
        raise ConfigError(
            f"{why}; --block-records, --titles and --retriever are for an open-QA checkpoint. Leave them out."
        )


def _import_model(checkpoint: Checkpoint, words: WordPiece, tokenizer: tuple[Path, ...], out: Path) -> Artifact:
    """Import an embedder or a scorer as a retriever, an encoder as a BERT with its head, a reader as a span reader."""
    model: Retriever | BertForMaskedLM | SpanReader
    if checkpoint.kind in ("embedder", "scorer"):
        kind, model = "retriever", retriever_of(checkpoint)
    elif checkpoint.kind == "encoder":
        kind, model = "encoder", encoder_of(checkpoint)
    else:
        kind, model = "span-reader", span_reader_of(checkpoint)

    def write(out: Writer) -> Mapping[str, Any]:
        if isinstance(model, BertForMaskedLM):
            save_masked_lm(model, out.path)
        else:
            model.save(out.path)
        words.save(out.path / "tokenizer" if kind == "retriever" else out.path)
        return {"wordpieces": len(words)}

    return make_imported(out, kind, write, sources={"checkpoint": checkpoint.files, "tokenizer": tokenizer})
