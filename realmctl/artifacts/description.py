"""Small JSON files that describe an artifact: `qa-model.json`, `encoder.json`, `blocks.json`, `ranking.json`.

The manifest says how an artifact was made; later stages must not depend on the names of those settings. They read a
description, whose fields are checked here.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from realmctl.artifacts.artifact import Artifact
from realmctl.artifacts.typed_json import read_as

T = TypeVar("T")
QA_MODEL, ENCODER, BLOCKS = "qa-model.json", "encoder.json", "blocks.json"
CONDENSER_HEAD = "condenser_head.safetensors"
"""The head that `condenser-init` writes beside an encoder, so that another one can continue with both."""
RANKING = "ranking.json"

Pooling = Literal["pooler", "cls", "mean"]


@dataclass(frozen=True, kw_only=True)
class QaModelDescription:
    """`qa-model.json`: how a qa-model answers.

    answerer: name of the answerer; `extractive` selects a span of a block, `closed-book` fills masks.
    searcher: name of the searcher that retrieves the blocks; None for a model without retrieval.
    objective: `orqa`, `paper` (each block's spans in a softmax of their own) or `closed-book`.
    reader_beam: blocks read per question, 0 without a searcher. reader_length, span_width: in wordpieces.
    """

    answerer: str
    searcher: str | None
    objective: str
    reader_beam: int
    reader_length: int
    span_width: int


@dataclass(frozen=True, kw_only=True)
class EncoderDescription:
    """`encoder.json`: what a retriever takes from an encoder, and the Condenser head beside it. Plain BERTs have no such file.

    pooling: what represents a passage, as in `ict-init --pooling`.
    skip_from: number of the layer whose token states the head reads. head_layers: number of layers of the head.
    """

    pooling: Pooling
    skip_from: int | None = None
    head_layers: int | None = None


@dataclass(frozen=True, kw_only=True)
class BlocksDescription:
    """`blocks.json` of imported blocks. titles: whether the blocks have titles. Blocks made by `chunk` always do."""

    titles: bool


@dataclass(frozen=True, kw_only=True)
class RankingDescription:
    """`ranking.json`: what a ranking ranks, blocks or the documents that they were cut from.

    reranked: the first hits of each query that have a reranker's scores; those behind them have others. None: there is no reranker.
    """

    unit: Literal["block", "document"]
    reranked: int | None = None


def write_description(path: Path, description: Any) -> None:
    """Write a description as JSON."""
    path.write_text(json.dumps(dataclasses.asdict(description), indent=1) + "\n", encoding="utf-8")


def read_description(path: Path, kind: type[T]) -> T:
    """Read the description in a file. Unknown fields are ignored.

    Raises InputError if the file is missing or not a JSON object, and if a field is missing or has another type.
    """
    return read_as(path, kind, "its artifact", "Restore the file or make the artifact again.")


def describe_qa_model(qa_model: Artifact) -> QaModelDescription:
    """Return the description of a qa-model."""
    return read_description(qa_model.file(QA_MODEL), QaModelDescription)


def describe_encoder(folder: Path) -> EncoderDescription | None:
    """Return the description of the encoder in an artifact or an exported folder; None for a plain BERT."""
    path = folder / ENCODER
    return read_description(path, EncoderDescription) if path.is_file() else None


def has_titles(blocks: Artifact) -> bool:
    """Whether blocks have titles. Only imported blocks, which have a blocks.json, may lack them."""
    return not blocks.has(BLOCKS) or read_description(blocks.file(BLOCKS), BlocksDescription).titles
