"""`realmctl import-realm`: turn a REALM checkpoint or an encoder, on this machine or on the hub, into artifacts.

All tensors are checked before anything is written, so that a bad checkpoint leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, Writer
from realmctl.errors import ConfigError, MismatchError
from realmctl.extras.hub.imports.checkpoint import HUB_FILES, Checkpoint, open_checkpoint
from realmctl.extras.hub.imports.open_qa import import_open_qa
from realmctl.extras.hub.imports.realm_weights import bert_config, encoder_of, retriever_of, span_reader_of
from realmctl.imports.encoder_folder import encoder_kind
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.imports.imported import make_imported
from realmctl.imports.model_folder import tokenizer_files
from realmctl.models.bert.files import save_masked_lm
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.retriever import Retriever
from realmctl.models.span_head import SpanReader
from realmctl.pipeline.sources import localise
from realmctl.tokens.tokenizer import Tokenizer


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


def import_checkpoint(
    source: str,
    workspace: Path,
    extras: ImportExtras,
    workers: int = 0,
    out: Path | None = None,
    *,
    flag: str = "SOURCE",
) -> dict[str, Artifact]:
    """Import a checkpoint or an encoder. Return its artifacts by kind.

    Each is in a series of its kind's name below `workspace`; a single one is in the series `out`, if that is given.
    flag: what the command calls `source`, for messages.

    Raises ConfigError for an extra that the checkpoint does not need, and for `out` with a checkpoint that becomes two artifacts;
    InputError and MismatchError for an extra that does not fit.
    """

    def fetched(name: str, flag: str) -> Path:
        return Path(localise(name, (), True, flag, files=HUB_FILES))

    folder = fetched(source, flag)
    if encoder_kind(folder):
        _refuse_open_qa(extras, f"{folder} is an encoder")
        block_folder = fetched(extras.block_encoder, "--block-encoder") if extras.block_encoder else None
        tokenizer = fetched(extras.tokenizer, "--tokenizer") if extras.tokenizer else None
        return {
            "retriever": import_encoder(folder, block_folder, tokenizer, extras.encoder, out or workspace / "retriever")
        }
    checkpoint = open_checkpoint(folder)
    if given := [*extras.encoder.given(), *(["block_encoder"] if extras.block_encoder else [])]:
        flags = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ConfigError(f"{source} is not an encoder folder, and {flags} describe encoders. Leave them out.")
    named = localise(extras.tokenizer, (), True, "--tokenizer") if extras.tokenizer else folder
    files = tokenizer_files(Path(named))
    if checkpoint.kind != "openqa":
        _refuse_open_qa(extras, f"{source} is a REALM {checkpoint.kind} without an index")
    words, rows = Tokenizer.load(files[0].parent), bert_config(checkpoint).vocab_size
    if len(words) != rows or words.pad != 0:
        raise MismatchError(
            f"The tokenizer in {files[0].parent} has {len(words)} wordpieces, [PAD] being number {words.pad}, and the "
            f"checkpoint {checkpoint.folder} has {rows}, [PAD] being 0. Name the tokenizer it was trained with: "
            "--tokenizer bert-base-uncased."
        )
    if checkpoint.kind == "openqa":
        if out is not None:
            raise ConfigError(
                f"--out {out}: an open-QA checkpoint becomes two series, blocks and qa-model. Name their folder: -w {out}."
            )
        parts = {"records": extras.records, "titles": extras.titles, "retriever": extras.retriever}
        return import_open_qa(checkpoint, words, files, workspace, **parts, workers=workers)
    kind, model = _model_of(checkpoint)

    def write(out: Writer) -> Mapping[str, Any]:
        if isinstance(model, BertForMaskedLM):
            save_masked_lm(model, out.path)
        else:
            model.save(out.path)
        words.save(out.path / "tokenizer" if kind == "retriever" else out.path)
        return {"wordpieces": len(words)}

    sources = {"checkpoint": checkpoint.files, "tokenizer": files}
    return {kind: make_imported(out or workspace / kind, kind, write, sources=sources)}


def _refuse_open_qa(extras: ImportExtras, why: str) -> None:
    if extras.records or extras.titles or extras.retriever:
        raise ConfigError(
            f"{why}; --block-records, --titles and --retriever are for an open-QA checkpoint. Leave them out."
        )


def _model_of(checkpoint: Checkpoint) -> tuple[str, Retriever | BertForMaskedLM | SpanReader]:
    """Return the kind and the model: an embedder or a scorer is a retriever, an encoder a BERT with its head, a reader a span reader."""
    if checkpoint.kind in ("embedder", "scorer"):
        return "retriever", retriever_of(checkpoint)
    if checkpoint.kind == "encoder":
        return "encoder", encoder_of(checkpoint)
    return "span-reader", span_reader_of(checkpoint)
