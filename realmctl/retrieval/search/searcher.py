"""What brings blocks to a question and scores them: all that fine-tuning, answering and evaluation see of a retriever.

Legend: B and Q questions, K blocks of a question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Artifact, Writer
from realmctl.nn.inputs import Collator
from realmctl.nn.precision import pick_device
from realmctl.retrieval.corpus import Corpus, TokenIds
from realmctl.text.tokens import wordpiece


@dataclass(frozen=True)
class Hit:
    """A retrieved block: its row, score, and p(z|x) among the hits."""

    row: int
    score: float
    probability: float


class Searcher(ABC):
    """Blocks with a way to search them."""

    def __init__(self, blocks: Artifact, device: str) -> None:
        self.device = pick_device(device)
        self.corpus, self.wordpiece = Corpus(blocks), wordpiece.load(blocks.path)
        words = self.wordpiece
        self.collator = Collator(words.cls, words.sep, words.pad, words.mask)

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Wordpieces of questions; a literal [MASK] or [SEP] in one is text like any other."""
        return [ids.astype(np.int64) for ids, _ in self.wordpiece.encode_batch(texts)]

    @property
    @abstractmethod
    def learner(self) -> nn.Module:
        """What of it is trained."""

    @property
    def lr_multiplier(self) -> float:
        """Factor of the learning rate of what is trained."""
        return 1.0

    @abstractmethod
    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows of the k best blocks of each question, both [B, K], best first. The learner must not be training."""

    @abstractmethod
    def scores(self, tokens: Sequence[TokenIds], rows_QK: NDArray[np.int64]) -> Tensor:
        """Scores of these blocks for learning: with gradients, float32 [Q, K]."""

    @abstractmethod
    def save(self, out: Writer) -> None:
        """Write it into a qa-model."""

    def learnt(self) -> Mapping[str, float]:
        """Numbers to log at each step."""
        return {}

    def search(self, tokens: Sequence[TokenIds], k: int) -> list[list[Hit]]:
        """The k best blocks of each question."""
        return [_hits(scores, rows) for scores, rows in zip(*self.nearest(tokens, k), strict=True)]


def _hits(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> list[Hit]:
    weights = np.exp((scores - scores.max()).astype(np.float64))
    shares = weights / weights.sum()
    return [Hit(*hit) for hit in zip(rows.tolist(), scores.tolist(), shares.tolist(), strict=True)]
