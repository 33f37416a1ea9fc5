"""Text search: questions in, retrieved blocks out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.api.blocks import LoadedBlocks, TextBlock
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.retrieval.search.searcher import Hit, Searcher

QUESTIONS_AT_ONCE = 16


@dataclass(frozen=True)
class RetrievedBlock(TextBlock):
    """A block found for a question, with its score and its p(z|x): the softmax of the scores of the k blocks retrieved."""

    score: float
    probability: float


class TextSearch:
    """Blocks and the searcher that finds them: dense (retriever and index) or BM25."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self.blocks = LoadedBlocks(searcher.corpus)

    def search(self, question: str, k: int = 5) -> list[RetrievedBlock]:
        """Return the k best blocks for a question, best first; all blocks when there are fewer than k.

        Raises:
            ConfigError: the question is empty, or k is below 1.

        Examples:
            >>> for hit in model.search("Who wrote it?", k=5):
            ...     print(hit.score, hit.title, hit.text)
        """
        hits = self._searcher.search(self._tokens([question], k), k)[0]
        return self.retrieved(hits)

    def search_batch(self, questions: Sequence[str], k: int = 5) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return scores float32 [n, k] and rows int64 [n, k] of the k best blocks for each of n questions, best first.

        k is at most the number of blocks. `blocks[row]` is the text of a row.

        Raises:
            ConfigError: a question is empty, or k is below 1.
        """
        tokens = self._tokens(questions, k)
        found = [self._searcher.nearest(part, k) for part in batches(tokens)]
        if not found:
            width = min(k, len(self.blocks))
            return np.empty((0, width), np.float32), np.empty((0, width), np.int64)
        scores, rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return scores, rows

    def retrieved(self, hits: Iterable[Hit]) -> list[RetrievedBlock]:
        """Hits with their blocks' texts, in the order given."""
        return [
            RetrievedBlock(**vars(self.blocks[hit.row]), score=hit.score, probability=hit.probability) for hit in hits
        ]

    def _tokens(self, questions: Sequence[str], k: int) -> list[TokenIds]:
        require_questions(questions, "k", k)
        return self._searcher.tokens(questions)

    def __repr__(self) -> str:
        return f"<text search over {self.blocks!r}>"


def batches(tokens: Sequence[TokenIds]) -> Iterable[Sequence[TokenIds]]:
    """Questions in batches of bounded size."""
    return (tokens[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(tokens), QUESTIONS_AT_ONCE))


def require_questions(questions: Sequence[str], name: str, count: int) -> None:
    """Raise ConfigError for an empty question, for a string where a list is expected, or for a count below 1."""
    if isinstance(questions, str):
        raise ConfigError(f"A batch is a list of questions, not the one string {questions[:80]!r}. Put it in a list.")
    if empty := [number for number, question in enumerate(questions) if not question.strip()]:
        raise ConfigError(f"Question {empty[0]} of {len(questions)} is empty. Remove it, or write a question.")
    if count < 1:
        raise ConfigError(f"{name} is {count}, and must be at least 1.")
