"""Dense retrieval of a few questions over the vectors of an index, without PyTorch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import ConfigError
from realmctl.extras.quick_search.bert import Floats, OtherTower, QuickTower
from realmctl.index.index_type import DESCRIPTION_FILE, open_index
from realmctl.index.merged import best_among
from realmctl.index.protocol import Index, RowIds, Scores, best_rows
from realmctl.index.vectors import VECTORS_FILE, chunks, open_vectors
from realmctl.retrieval.search.block_search import Ranker, SearchInputs, scale_of
from realmctl.retrieval.search.parts import require_parts
from realmctl.tokens.tokenizer import Tokenizer

GPUS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Where Linux shows that there is a GPU, which `--device auto` would take."""
LONGEST_QUESTION = 512
SCANNED = 100_000
"""Vectors of a graph that are scanned instead: that takes less time than opening the graph, and misses nothing."""


class QuickDense(Ranker):
    """A query tower in NumPy over the vectors of an exact index, or of a graph of few."""

    def __init__(self, inputs: SearchInputs, retriever: Artifact, index: Artifact) -> None:
        require_parts(retriever, index, inputs.blocks)
        self._inputs = inputs
        self.tower = QuickTower(retriever.path)
        self.vectors = _vectors(index.path)
        if self.vectors.shape[1] != self.tower.settings.projection:
            raise OtherTower  # the searcher says what is wrong
        self.corpus, self.wordpiece = Corpus(inputs.blocks), Tokenizer.load(inputs.blocks.path)

    @classmethod
    def start(cls, inputs: SearchInputs) -> Self | None:
        """Return it where few questions are asked on a CPU, of a BERT and an index that is scanned."""
        plain = inputs.device in ("auto", "cpu") and inputs.precision in ("auto", "fp32")
        if not (inputs.few and plain and inputs.retriever and inputs.index) or inputs.opener is not open_index:
            return None
        if inputs.device == "auto" and any(Path(each).exists() for each in GPUS):
            return None
        try:
            return cls(inputs, inputs.retriever, inputs.index)
        except OtherTower:
            return None

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return a searcher of other blocks with an exact index."""
        retriever = self._inputs.retriever
        if retriever is None or index is None:
            raise ConfigError(f"{blocks} cannot be searched without an index of their vectors. Name it.")
        try:
            return type(self)(dataclasses.replace(self._inputs, blocks=blocks, index=index), retriever, index)
        except OtherTower:
            raise ConfigError(f"{index} is not scanned. Open a search of its own: load_search(index=...).") from None

    @property
    def unit_score(self) -> float:
        return scale_of(lambda rows: np.asarray(self.vectors[rows], np.float32), len(self.vectors))

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The best blocks by inner product; equal scores are ordered by rising row."""
        best = [best_rows(self._scores(self.tower.embed(self._ids(each))), min(k, len(self.corpus))) for each in tokens]
        scores_BK, rows_BK = (np.stack(parts) for parts in zip(*best, strict=True))
        return scores_BK, rows_BK

    def nearest_among(self, tokens: Sequence[TokenIds], k: int, rows: RowIds) -> list[tuple[Scores, RowIds]]:
        """The best of some blocks by inner product."""
        query_BD = np.stack([self.tower.embed(self._ids(each)) for each in tokens])
        return best_among(lambda own: query_BD @ np.asarray(self.vectors[own], np.float32).T, k, rows)

    def _ids(self, tokens: TokenIds) -> NDArray[np.int64]:
        """The input of a question, as `Retriever.pack_queries` lays it out."""
        settings, words = self.tower.settings, self.wordpiece
        prefix, positions = settings.layout.query_prefix, self.tower.config.max_position_embeddings
        longest, most = (
            (settings.query_length,) * 2 if settings.norm_eps is None else (min(LONGEST_QUESTION, positions), positions)
        )
        text = words.at_start(prefix.before(cast(Any, words), tokens))
        cut = text[: min(longest + len(prefix.ids), most) - words.frame.around_one]
        return np.array([*words.frame.before, *np.asarray(cut).tolist(), *words.frame.after], np.int64)

    def _scores(self, vector: Floats) -> Floats:
        return np.concatenate([chunk @ vector for _, chunk in chunks(self.vectors)])


def _vectors(folder: Path) -> NDArray[Any]:
    """The vectors that are scanned. Raises OtherTower for another type, and for one that is damaged: the searcher says what is wrong."""
    try:
        found = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        scanned = found["type"] == "exact" or (found["type"] == "hnsw" and found["count"] <= SCANNED)
        if not scanned or found["metric"] != "ip":
            raise OtherTower
        return open_vectors(folder / VECTORS_FILE, count=found["count"], dimension=found["dimension"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise OtherTower from error
