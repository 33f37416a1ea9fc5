"""What answers questions, as evaluation and `ask` see it, whether it reads blocks or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from realmctl.retrieval.corpus import TokenIds
from realmctl.retrieval.search.searcher import Hit, Searcher


@dataclass(frozen=True)
class Evidence:
    """Where an answer stands: its block, and its character offsets in the block's text."""

    hit: Hit
    start: int
    end: int


@dataclass(frozen=True)
class Answer:
    """An answer's text, its score, and its evidence (None: it came from the model's weights alone).

    Read from a block, the score is the span's and the block's together; from memory, a mean log-probability.
    """

    text: str
    score: float
    evidence: Evidence | None = None


class Answerer(Protocol):
    """A qa-model ready to answer."""

    @property
    def searcher(self) -> Searcher | None:
        """What brings it blocks; None for one that answers without."""
        ...

    @property
    def reader_beam(self) -> int:
        """How many of a question's blocks it reads, at most."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Wordpieces of questions."""
        ...

    def answer(self, tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The `top` best answers with different texts to each question, best first; `hits` are its retrieved blocks."""
        ...

    def ask(self, question: str, top: int) -> list[Answer]:
        """The same for one question, retrieved for here."""
        ...
