"""Answerers answer questions with a qa-model, from retrieved blocks or from the model's weights alone.

Evaluation and `ask` use a qa-model only through an answerer. Answerers are found by the name in its `qa-model.json`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import TokenIds
from realmctl.retrieval.search.searcher import Hit, Searcher


@dataclass(frozen=True)
class Evidence:
    """The evidence of an answer: its block, and its character offsets in the block's text."""

    hit: Hit
    start: int
    end: int


@dataclass(frozen=True)
class Answer:
    """An answer's text, its score and its evidence; evidence is None for an answer from the model's weights alone.

    The score of an answer from a block is the span's score plus the block's score. The score of a closed-book answer is
    a mean log-probability.
    """

    text: str
    score: float
    evidence: Evidence | None = None


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

    @abstractmethod
    def ask(self, question: str, top: int) -> list[Answer]:
        """Retrieve blocks for one question and return its `top` best answers, best first."""
