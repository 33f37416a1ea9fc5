"""retriever.json, which describes a saved retriever."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from realmctl.artifacts.typed_json import read_as
from realmctl.models.towers.layout import InputLayout

Pooling = str
"""A name of `realmctl.models.towers.poolings`, or `pooler`."""
ProjectionHead = Literal["layer-norm", "plain", "none"]
ProjectionInit = Literal["random", "pca"]
Towers = Literal["shared", "separate", "query-only"]
NORM_EPS = 1e-12
"""Epsilon of the layer norm in the published weights. The open ICT code leaves Keras's default, 1e-3."""
RETRIEVER = "retriever.json"


@dataclass(frozen=True)
class ProjectionStart:
    """The initial projection, recorded in retriever.json for people. The weights themselves are in the tower.

    Args:
        init: `random`, or `pca` (`realmctl.lab.closed_form.pca`).
        scale: Scale S of the inner products (see `realmctl.models.retriever`); None when the gain started at 1.
    """

    init: ProjectionInit = "random"
    scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class RetrieverSettings:
    """`retriever.json`: what a saved retriever is, beside its weights.

    Attributes:
        projection: Width D of the embeddings.
        query_length, block_length: Longest query and block, in wordpieces.
        pooling, towers: What represents a text, and whether queries and blocks share a tower.
        block_encoder: SHA-256 of the tensors of the block tower.
        norm_eps: Epsilon of the layer norm after the projection; None for an imported tower.
        head: The steps behind the pooling of an imported tower, as `asdict` of them; None for a tower made here.
        query_pooling, query_head: The same of the query tower, where it is not as the block tower.
        start: The initial projection.
        layout: How queries and blocks are read.
        block_retriever: Content hash of the retriever whose block encoder made the vectors that a fine-tuned one searches;
            None for a retriever that embeds its own blocks.
    """

    projection: int
    query_length: int
    block_length: int
    pooling: Pooling
    towers: Towers
    block_encoder: str
    norm_eps: float | None = None
    head: list[dict[str, Any]] | None = None
    query_pooling: Pooling | None = None
    query_head: list[dict[str, Any]] | None = None
    start: ProjectionStart
    layout: InputLayout
    block_retriever: str | None = None

    def __post_init__(self) -> None:
        for name in ("projection", "query_length", "block_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}")
        if self.head is not None and self.norm_eps is not None:
            raise ValueError("it has both norm_eps and head")
        if self.head is None and not (isinstance(self.norm_eps, float) and 0 < self.norm_eps < 1):
            raise ValueError(f"norm_eps is {self.norm_eps!r}, not a number between 0 and 1")

    def write(self, folder: Path) -> None:
        """Write retriever.json."""
        (folder / RETRIEVER).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def read_settings(folder: Path) -> RetrieverSettings:
    """Return the checked content of retriever.json in `folder`.

    Raises:
        InputError: The file is missing or malformed, or a value is impossible.
    """
    return read_as(
        folder / RETRIEVER,
        RetrieverSettings,
        "a retriever",
        "Restore the file, or make the retriever again.",
        whole=True,
    )
