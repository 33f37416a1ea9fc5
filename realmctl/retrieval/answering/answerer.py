"""Answerers answer questions with a qa-model, from retrieved blocks or from the model's weights alone.

A `QaModel` works only through its answerer, which is found by its name in `qa-model.json`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.retrieval.search.block_search import Hit
from realmctl.retrieval.search.searcher import Searcher


@dataclass(frozen=True)
class Answer:
    """An answer: its text, its score, the hit that it was read from, and its character offsets: `hit.block.text[start:end]`.

    hit, start and end are None for an answer from the model's weights alone. The score of an answer from a block is the
    span's score plus the block's score. The score of a closed-book answer is a mean log-probability.
    """

    text: str
    score: float
    hit: Hit | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, kw_only=True)
class AnsweringOptions:
    """The options of an answerer.

    reader_beam: blocks read per question; None for as many as in fine-tuning.
    official_text: return the text of an answer as the official code does, whole words joined with spaces.
    index: index to search instead of the qa-model's own, such as one of revised blocks.
    """

    reader_beam: int | None = None
    device: str = "auto"
    precision: str = "auto"
    official_text: bool = False
    index: Artifact | None = None


class Answerer(ABC):
    """A qa-model ready to answer."""

    searcher: Searcher | None
    """The searcher that retrieves the blocks; None for an answerer that reads no blocks."""
    reader_beam: int
    """The number of blocks read per question, at most."""

    @classmethod
    @abstractmethod
    def open(cls, qa_model: Artifact, blocks: Artifact, options: AnsweringOptions) -> Self:
        """Open a qa-model. Raises MismatchError if it was fine-tuned on other blocks."""

    @abstractmethod
    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Wordpieces of questions."""

    @abstractmethod
    def answer(self, tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The `top` best answers with different texts to each question, best first; `hits` are its retrieved blocks."""

    def with_searcher(self, searcher: Searcher) -> Self:
        """Return this answerer with another searcher of the same vocabulary, such as one of revised blocks.

        Raises ConfigError: this kind of answerer stays with its searcher.
        """
        raise ConfigError(
            f"{type(self).__name__} cannot answer from other blocks than its own. Fine-tune a model on them."
        )
