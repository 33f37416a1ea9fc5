"""What finds blocks for questions, without PyTorch: the first search of a process starts in a fraction of the time that importing it takes.

Legend: B questions, K blocks of a question.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import ConfigError
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index, RowIds, Scores
from realmctl.retrieval.names import Bm25Tokens
from realmctl.tokens.tokenizer import Tokenizer

SCALED_BY = 64
"""Vectors that show the scale of their scores."""


@dataclass(frozen=True)
class Hit:
    """A retrieved block: its row, the block, its score, and p(z|x), the softmax of the scores of a question's hits over `BlockSearch.temperature`."""

    row: int
    block: Block
    score: float
    probability: float
    copies: tuple[Block, ...] = ()
    """Blocks of the same text that were found below this one, such as those of a file that was copied."""


@dataclass(frozen=True, kw_only=True)
class SearchInputs:
    """The inputs of a searcher.

    retriever and index are None for a searcher that does not use them. To reopen a qa-model, `index` replaces its own.
    few: whether few questions are asked, for which the start counts. bm25_tokens: what BM25 compares. bm25_stemmer: name of a Snowball stemmer, with which it compares stems of words. opener: opens the
    index in a folder on a device.
    """

    blocks: Artifact
    retriever: Artifact | None = None
    index: Artifact | None = None
    device: str = "auto"
    precision: str = "auto"
    bm25_stemmer: str | None = None
    bm25_tokens: Bm25Tokens = "pieces"
    few: bool = False
    opener: Callable[[Path, str], Index] = open_index

    @classmethod
    def of(cls, settings: Any, **others: Any) -> Self:
        """Return the inputs that the settings of a stage name, with `others` in their place."""
        named = {"blocks", "retriever", "index", "device", "precision"} - others.keys()
        return cls(**{name: getattr(settings, name) for name in named}, **others)


class BlockSearch(ABC):
    """Base class of what finds blocks for questions: a searcher, or several whose rankings are fused.

    corpus: the blocks. wordpiece: their tokenizer.
    """

    least_score: ClassVar[float] = -math.inf
    """A block with this score or a lower one is no hit of a search. `nearest` may return such blocks."""
    temperature: float = 1.0
    """By what scores are divided in p(z|x). 1: they are logits."""
    corpus: Corpus
    wordpiece: Tokenizer

    @property
    def unit_score(self) -> float:
        """The score that stands for a cosine of 1, of a searcher by vectors."""
        return 1.0

    @abstractmethod
    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[Scores, RowIds]:
        """Scores and rows of the k best blocks of each question, both [B, K], best first. What is trained must be in evaluation mode."""

    def nearest_among(self, tokens: Sequence[TokenIds], k: int, rows: RowIds) -> Iterable[tuple[Scores, RowIds]]:
        """Scores and rows of the k best of some blocks for each question, best first. All blocks are ranked; a searcher that can do better does.

        rows: rows of at least one block, rising.
        """
        for scores, found in zip(*self.nearest(tokens, len(self.corpus)), strict=True):
            kept = np.isin(found, rows)
            yield scores[kept][:k], found[kept][:k]

    def ranked(self, tokens: Sequence[TokenIds], k: int, among: RowIds | None = None) -> list[tuple[Scores, RowIds]]:
        """Scores and rows of the hits of each question among its k best blocks, best first. A fused ranking may be longer than k.

        among: rows of the blocks that may be hits, rising; None: all.
        """
        if among is None:
            nearest: Iterable[tuple[Scores, RowIds]] = zip(*self.nearest(tokens, k), strict=True)
        elif len(among):
            nearest = self.nearest_among(tokens, k, among)
        else:
            return [(np.empty(0, np.float32), among) for _ in tokens]
        return [(scores[scores > self.least_score], rows[scores > self.least_score]) for scores, rows in nearest]

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return this searcher over other blocks, such as revised ones. Both share what was learned in memory.

        Args:
            blocks: the blocks.
            index: the index of their vectors, for a searcher that uses one.
            opener: opens the index in a folder on a device.

        Raises:
            MismatchError: the blocks do not belong to the searcher or to the index.
            ConfigError: this kind of searcher stays with its blocks.
        """
        raise ConfigError(f"{type(self).__name__} cannot search other blocks than its own. Fine-tune a model on them.")

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Wordpieces of questions. A literal [MASK] or [SEP] in a question is ordinary text."""
        return [*self.wordpiece.tokens(texts)]

    def search(self, tokens: Sequence[TokenIds], k: int) -> list[list[Hit]]:
        """The k best blocks of each question, best first."""
        return self.hits(*self.nearest(tokens, k))

    def hits(self, scores: Iterable[Scores], rows: Iterable[RowIds]) -> list[list[Hit]]:
        """The hits of each question, from the scores and the rows of its blocks. The blocks are read in stored order."""
        scored = [*zip(scores, rows, strict=True)]
        blocks = self.corpus.blocks({row for _, own in scored for row in own.tolist()})
        found = []
        for score, own in scored:
            weights = np.exp((score - score.max(initial=-np.inf)).astype(np.float64) / self.temperature)
            each = zip(own.tolist(), score.tolist(), (weights / weights.sum()).tolist(), strict=True)
            found.append([Hit(row, blocks[row], score, share) for row, score, share in each])
        return found


def scale_of(vectors: Callable[[RowIds], NDArray[np.float32]], count: int) -> float:
    """Return the mean score of a block with itself, by its vector. An encoder whose vectors have the length sqrt(S) has the scale S."""
    sample = vectors(np.linspace(0, count - 1, min(count, SCALED_BY), dtype=np.int64)).astype(np.float64)
    return float((sample * sample).sum(1).mean()) or 1.0


def require_count(name: str, count: int) -> None:
    """Raise ConfigError unless it is a whole number of at least 1, of Python or of numpy."""
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise ConfigError(f"{name} is {count!r}, and must be a whole number of at least 1.")


class Ranker(BlockSearch):
    """What stands for the searcher of the same name where nothing is trained (`RANKERS`)."""

    @classmethod
    @abstractmethod
    def start(cls, inputs: SearchInputs) -> Self | None:
        """Return a ranker of the inputs; None leaves them to the searcher. Raises a RealmctlError."""
