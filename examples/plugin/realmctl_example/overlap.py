"""A searcher that ranks blocks by the number of different wordpieces that they share with the question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Artifact, Writer, require_descent
from realmctl.corpus.corpus import TokenIds
from realmctl.index.protocol import by_score
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.bm25 import LearnedScale
from realmctl.retrieval.search.searcher import Searcher


class OverlapSearcher(Searcher):
    """Counts shared wordpieces of title and body. One learned factor scales the counts."""

    def __init__(self, inputs: SearchInputs, scale: float = 1.0) -> None:
        super().__init__(inputs.blocks, inputs.device)
        corpus = self.corpus
        self.words = [{*corpus.title(row).tolist(), *corpus.tokens(row).tolist()} for row in range(len(corpus))]
        self.scale = LearnedScale(scale).to(self.device)

    @classmethod
    def start(cls, inputs: SearchInputs) -> Self:
        return cls(inputs)

    @classmethod
    def reopen(cls, qa_model: Artifact, inputs: SearchInputs) -> Self:
        require_descent(qa_model, inputs.blocks)
        return cls(inputs, json.loads(qa_model.file("overlap.json").read_text())["scale"])

    def save(self, out: Writer) -> None:
        out.file("overlap.json").write_text(json.dumps({"scale": self.scale.value}) + "\n")

    @property
    def learner(self) -> LearnedScale:
        return self.scale

    @property
    def lr_multiplier(self) -> float:
        return self.scale.LR_MULTIPLIER

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        counts = np.stack([self.counts(question) for question in tokens])
        rows = np.tile(np.arange(len(self.corpus)), (len(tokens), 1))
        scores_BK, rows_BK = by_score(counts * np.float32(self.scale.value), rows)
        return scores_BK[:, :k], rows_BK[:, :k]

    def scores(self, tokens: Sequence[TokenIds], rows_QK: NDArray[np.int64]) -> Tensor:
        counts = [self.counts(question)[rows] for question, rows in zip(tokens, rows_QK, strict=True)]
        scaled_QK: Tensor = self.scale(torch.from_numpy(np.stack(counts)).to(self.device))
        return scaled_QK

    def counts(self, question: TokenIds) -> NDArray[np.float32]:
        """Shared wordpieces of the question and each block, float32 [blocks]."""
        asked = set(question.tolist())
        return np.array([len(asked & words) for words in self.words], dtype=np.float32)
