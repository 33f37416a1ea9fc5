"""Import an open-QA checkpoint as blocks and a qa-model: query tower, span reader, and the index of the pre-trained embedder.

Fine-tuning changed the embedder and not the index. So the embedder becomes a query-only retriever. The lineage of the index
names the pre-trained embedder: the artifact given by --retriever, or else a placeholder that matches no artifact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from realmctl.artifacts import Artifact, Writer, open_artifact, require_same_vocabulary, writing
from realmctl.artifacts.arrays import evenly_spaced
from realmctl.artifacts.description import (
    QA_MODEL,
    QaModelDescription,
    has_titles,
    write_description,
)
from realmctl.artifacts.hashing import digest
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.extras.hub.imports.block_records import read_records
from realmctl.extras.hub.imports.checkpoint import Checkpoint
from realmctl.extras.hub.imports.published_blocks import import_blocks
from realmctl.extras.hub.imports.realm_weights import (
    block_embeddings_of,
    query_side_of,
    span_head_is_fresh,
    span_reader_of,
)
from realmctl.imports.imported import make_imported
from realmctl.index.build import build
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import open_vectors
from realmctl.log import warn
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.models.retriever_settings import read_settings
from realmctl.retrieval.embedding.embedding import embed_blocks
from realmctl.tokens.tokenizer import Tokenizer

RECORDS = "block_records.npy"
SETTINGS = {
    "reader_beam": ("reader_beam_size", 5),
    "reader_length": ("reader_seq_len", 320),
    "span_width": ("max_span_width", 10),
}
"""{setting of the qa-model: (its name in the checkpoint's config.json, value if it is not there)}."""
ROWS_COMPARED = 8
TOLERANCE = 0.05
"""Largest accepted distance between a row and its block embedded again, as a share of the row's norm.

For another model the distance is above 1."""


def import_open_qa(
    checkpoint: Checkpoint,
    words: Tokenizer,
    tokenizer: tuple[Path, ...],
    out: Path,
    *,
    records: Path | None = None,
    titles: Path | None = None,
    retriever: Path | None = None,
    workers: int = 0,
) -> dict[str, Artifact]:
    """Import a published open-QA checkpoint. Returns the artifacts of kind `blocks` and `qa-model`.

    Args:
        checkpoint: Its files and tensors.
        words: Its tokenizer, of the files `tokenizer`.
        tokenizer: The files of the tokenizer.
        out: Folder of the two series.
        records: block_records.npy. None for the file in the checkpoint's folder.
        titles: A text file with the title of one block on each line.
        retriever: The imported embedder that made the index.
        workers: Processes; 0 for one for each core.

    Raises:
        InputError: A file is missing or damaged, or a tensor does not fit.
        MismatchError: The parts do not belong together.
    """
    query_side_of(checkpoint, "")
    reader, rows_ND = span_reader_of(checkpoint), block_embeddings_of(checkpoint)
    settings = {name: checkpoint.config.get(theirs, default) for name, (theirs, default) in SETTINGS.items()}
    if unknown := [f"{name} {value!r}"[:80] for name, value in settings.items() if type(value) is not int]:
        raise InputError(f"{checkpoint.folder / 'config.json'}: {unknown[0]} is not a number. Download it again.")
    records_file = records or checkpoint.folder / RECORDS
    _require_records(checkpoint, records_file, len(rows_ND))
    embedder = _pre_trained(retriever)
    if embedder is None:
        warn(
            "--retriever does not name the pre-trained embedder of this index, so no block can be added to the index later"
        )
    if titles is None:
        warn("--titles is missing, so these blocks can be searched and read, but not embedded again")
    blocks = import_blocks(records_file, titles, tokenizer, out, workers)
    require_same_vocabulary(blocks, *([embedder] if embedder else []))

    def write(out: Writer) -> Mapping[str, Any]:
        index = _write_index(out, rows_ND, embedder, blocks)
        made_by = Retriever.load(embedder.path).block_encoder_hash() if embedder else "unknown"
        with writing(out.path / "retriever", dataclasses.replace(out.origin, kind="retriever")) as part:
            query_side_of(checkpoint, made_by).save(part.path, index.lineage["retriever"])
            words.save(part.path / "tokenizer")
        with writing(out.path / "reader", dataclasses.replace(out.origin, kind="span-reader")) as part:
            reader.save(part.path)
            words.save(part.path)
        described = QaModelDescription(answerer="extractive", searcher="dense", objective="orqa", **settings)
        write_description(out.file(QA_MODEL), described)
        if fresh := span_head_is_fresh(reader):
            warn("this checkpoint's span head was never trained to answer: fine-tune before you ask it")
        return {"rows": index.metrics["rows"], "span_head_trained": not fresh}

    model = make_imported(
        out / "qa-model",
        "qa-model",
        write,
        sources={"checkpoint": checkpoint.files, "tokenizer": tokenizer},
        settings=settings,
        inputs={"blocks": blocks} | ({"retriever": embedder} if embedder else {}),
    )
    return {"blocks": blocks, "qa-model": model}


def _require_records(checkpoint: Checkpoint, path: Path, rows: int) -> None:
    """Raise InputError or MismatchError unless there are as many block records as rows of the index."""
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


def _pre_trained(path: Path | None) -> Artifact | None:
    artifact = open_artifact(path) if path else None
    if artifact and (artifact.kind != "retriever" or read_settings(artifact.path).block_retriever):
        raise MismatchError(
            f"--retriever {artifact.path} is not a pre-trained embedder, but the index was made before fine-tuning. Import "
            "google/realm-cc-news-pretrained-embedder and name the retriever that this makes."
        )
    return artifact


def _write_index(out: Writer, rows_ND: Tensor, retriever: Artifact | None, blocks: Artifact) -> Artifact:
    options = IndexSettings(type="exact")
    unnamed = digest(["the pre-trained embedder of", out.origin.inputs["checkpoint"]])
    lineage = {**out.origin.lineage, "retriever": retriever.content if retriever else unnamed}
    origin = dataclasses.replace(out.origin, kind="index", settings=dataclasses.asdict(options), lineage=lineage)
    with writing(out.path / "index", origin) as part:
        np.save(part.file("vectors.npy"), rows_ND.numpy())
        part.metrics.update(build(part.path, options))
        if retriever and has_titles(blocks):
            _require_rows_of(retriever, blocks, part.path / "vectors.npy")
    return open_artifact(out.path / "index")


def _require_rows_of(retriever: Artifact, blocks: Artifact, vectors: Path) -> None:
    """Raise MismatchError unless `retriever` gives the same vectors for a few blocks spread over the index."""
    matrix = open_vectors(vectors)
    rows = evenly_spaced(len(matrix), ROWS_COMPARED).tolist()
    collator = Collator.of(Tokenizer.load(blocks.path))
    anew = embed_blocks(Retriever.load(retriever.path), collator, Corpus(blocks), rows, precision="fp32")
    theirs = matrix[rows].astype(np.float32)
    far = np.linalg.norm(anew - theirs, axis=1) / np.maximum(np.linalg.norm(theirs, axis=1), 1e-12)
    if np.median(far) > TOLERANCE:
        raise MismatchError(
            f"{retriever} did not make this index: of {len(rows)} blocks embedded again, row {rows[int(far.argmax())]} "
            f"differs by {far.max():.0%} of its norm. Name the pre-trained embedder of the index, and the titles of "
            "these blocks."
        )
