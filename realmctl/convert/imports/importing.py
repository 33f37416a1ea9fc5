"""`realmctl import`: turn a REALM checkpoint or an encoder, on this machine or on the hub, into artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.description import describe_retriever
from realmctl.convert.imports.checkpoint import HUB_FILES, Checkpoint, open_checkpoint, tokenizer_files
from realmctl.convert.imports.import_retriever import ImportEncoderAsRetriever
from realmctl.convert.imports.imported import ImportBlocks, Imported, ImportEncoder, ImportReader, ImportRetriever
from realmctl.convert.imports.imported_qa import ImportQaModel
from realmctl.convert.imports.opened_encoder import encoder_kind
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.log import warn
from realmctl.pipeline.sources import localise

RECORDS = "block_records.npy"
MODELS: Mapping[str, type[Imported]] = {
    "embedder": ImportRetriever,
    "scorer": ImportRetriever,
    "encoder": ImportEncoder,
    "reader": ImportReader,
}


@dataclass(frozen=True)
class ImportExtras:
    """What a checkpoint may lack or leave open.

    These are the tokenizer and, for open QA, the block records, the titles and the embedder. For an encoder they are
    the encoder of blocks, and settings of `ImportEncoderAsRetriever` by their names.
    """

    tokenizer: str | None = None
    records: Path | None = None
    titles: Path | None = None
    retriever: Path | None = None
    block_encoder: str | None = None
    encoder: Mapping[str, Any] = field(default_factory=dict)


def import_checkpoint(source: str, out: Path, extras: ImportExtras, workers: int = 0) -> dict[str, Artifact]:
    """Import a checkpoint or an encoder. Return its artifacts by kind; each is in a series of that name below `out`.

    Raises ConfigError for an extra that the checkpoint does not need, InputError and MismatchError for one that does not fit.
    """
    folder = _fetched(source, "SOURCE")
    if encoder_kind(folder):
        return _encoder(folder, out, extras)
    if extras.encoder or extras.block_encoder:
        flags = _flags([*extras.encoder, *(["block_encoder"] if extras.block_encoder else [])])
        raise ConfigError(f"{source} is not an encoder folder, and {flags} describe encoders. Leave them out.")
    named = localise(extras.tokenizer, (), True, "--tokenizer") if extras.tokenizer else folder
    checkpoint, words = open_checkpoint(folder), tokenizer_files(Path(named))
    if checkpoint.kind == "openqa":
        return _open_qa(checkpoint, words, out, extras, workers)
    if extras.records or extras.titles or extras.retriever:
        raise ConfigError(
            f"{source} is a REALM {checkpoint.kind} without an index; --block-records, --titles and --retriever are "
            "for an open-QA checkpoint. Leave them out."
        )
    stage = MODELS[checkpoint.kind](checkpoint=checkpoint.files, tokenizer=words)
    return {stage.makes: stage.make(out / stage.makes)}


def _encoder(folder: Path, out: Path, extras: ImportExtras) -> dict[str, Artifact]:
    """Import an encoder as a retriever."""
    if extras.records or extras.titles or extras.retriever:
        raise ConfigError(
            f"{folder} is an encoder; --block-records, --titles and --retriever are for open-QA checkpoints of REALM. Leave "
            "them out."
        )
    stage = ImportEncoderAsRetriever(
        encoder=folder,
        block_encoder=_fetched(extras.block_encoder, "--block-encoder") if extras.block_encoder else None,
        tokenizer=_fetched(extras.tokenizer, "--tokenizer") if extras.tokenizer else None,
        **extras.encoder,
    )
    return {stage.makes: stage.make(out / stage.makes)}


def _fetched(name: str, flag: str) -> Path:
    return Path(localise(name, (), True, flag, files=HUB_FILES))


def _flags(names: Iterable[str]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)


def _open_qa(
    checkpoint: Checkpoint, words: tuple[Path, ...], out: Path, extras: ImportExtras, workers: int
) -> dict[str, Artifact]:
    from realmctl.convert.realm_weights import block_embeddings_of, query_side_of, span_reader_of

    Imported(checkpoint=checkpoint.files, tokenizer=words).opened()
    query_side_of(checkpoint, "")
    span_reader_of(checkpoint)
    records = _records(checkpoint, extras.records, len(block_embeddings_of(checkpoint)))
    retriever = _pre_trained(extras.retriever)
    if retriever is None:
        warn(
            "--retriever does not name the pre-trained embedder of this index, so no block can be "
            "added to the index later"
        )
    if extras.titles is None:
        warn("--titles is missing, so these blocks can be searched and read, but not embedded again")
    blocks = ImportBlocks(records=records, titles=extras.titles, tokenizer=words, workers=workers).make(out / "blocks")
    config = {"reader_beam": "reader_beam_size", "reader_length": "reader_seq_len", "span_width": "max_span_width"}
    settings = {name: checkpoint.config[theirs] for name, theirs in config.items() if theirs in checkpoint.config}
    model = ImportQaModel(checkpoint=checkpoint.files, tokenizer=words, blocks=blocks, retriever=retriever, **settings)
    return {"blocks": blocks, "qa-model": model.make(out / "qa-model")}


def _pre_trained(path: Path | None) -> Artifact | None:
    artifact = open_artifact(path) if path else None
    if artifact and (artifact.kind != "retriever" or describe_retriever(artifact).block_retriever):
        raise MismatchError(
            f"--retriever {artifact.path} is not a pre-trained embedder, but the index was made "
            f"before fine-tuning. Import "
            "google/realm-cc-news-pretrained-embedder and name the retriever that this makes."
        )
    return artifact


def _records(checkpoint: Checkpoint, named: Path | None, rows: int) -> Path:
    """Return the path of the block records. Raises InputError or MismatchError unless there are as many as index rows."""
    from realmctl.convert.imports.block_records import read_records

    path = named or checkpoint.folder / RECORDS
    if not path.is_file():
        raise InputError(
            f"There are no block records at {path}: the index refers to blocks whose texts are missing. Name "
            f"the {RECORDS} of google/realm-orqa-nq-openqa, which has the same blocks: --block-records."
        )
    count, _ = read_records(path)
    if count != rows:
        raise MismatchError(
            f"{checkpoint.folder} indexes {rows} blocks, and {path} holds {count}: row i must be block i. Name the "
            f"{RECORDS} that was published with this index."
        )
    return path
