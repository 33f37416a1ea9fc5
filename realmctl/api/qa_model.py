"""A fine-tuned model: text search, and answers with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from realmctl.api.blocks import BlocksLike, LoadedBlocks, blocks_for
from realmctl.api.search import RetrievedBlock, TextSearch, batches, require_questions
from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, InputError
from realmctl.pipeline import resolve
from realmctl.retrieval.answering.answerer import Answer, Answerer
from realmctl.retrieval.answering.open_answerer import open_answerer


@dataclass(frozen=True)
class AnswerEvidence:
    """The evidence of an answer: the block that contains it, and its character offsets: `hit.text[start:end]`."""

    hit: RetrievedBlock
    start: int
    end: int


@dataclass(frozen=True)
class ScoredAnswer:
    """An answer with its score and its evidence, which a closed-book model does not have.

    The score of a span is its reader score plus the retrieval score of its block. The score of a closed-book answer is
    a mean log-probability.
    """

    text: str
    score: float
    evidence: AnswerEvidence | None


@dataclass(frozen=True)
class QuestionAnswers(Sequence[ScoredAnswer]):
    """The answers to one question, best first: iterate, index, or take `best`."""

    question: str
    answers: tuple[ScoredAnswer, ...]

    @property
    def best(self) -> ScoredAnswer:
        """The answer with the highest score. Raises InputError when there is no answer at all."""
        if not self.answers:
            raise InputError(f"There is no answer to {self.question!r}: no retrieved block contains a span of text.")
        return self.answers[0]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, rank: int) -> ScoredAnswer: ...
    @overload
    def __getitem__(self, rank: slice) -> tuple[ScoredAnswer, ...]: ...
    def __getitem__(self, rank: int | slice) -> ScoredAnswer | tuple[ScoredAnswer, ...]:
        return self.answers[rank]


class LoadedQaModel:
    """A model made by `finetune`, which answers questions.

    It reads blocks found by dense search or BM25, or none (closed book).

    Examples:
        >>> qa = realmctl.load("artifacts/qa-model")
        >>> best = qa.answer("Who wrote it?").best
        >>> best.text, best.evidence.hit.title
    """

    def __init__(self, artifact: Artifact, answerer: Answerer, blocks: Artifact) -> None:
        self.artifact, self._answerer = artifact, answerer
        self._search = TextSearch(answerer.searcher) if answerer.searcher else None
        self.blocks = self._search.blocks if self._search else LoadedBlocks.open(blocks)

    @classmethod
    def open(
        cls,
        path: Path | str | Artifact,
        *,
        blocks: BlocksLike | None = None,
        device: str = "auto",
        precision: str = "auto",
    ) -> LoadedQaModel:
        """Open a fine-tuned model with its blocks.

        Args:
            path: a series, a version or an open artifact.
            blocks: the blocks it was fine-tuned on; by default the series `blocks` beside the model's series.
            device: auto, cpu or cuda:N.
            precision: arithmetic of encoder and reader: fp32, bf16, or auto for bf16 where the hardware has it.

        Raises:
            InputError: a file is missing or damaged, or no blocks are named and none are found.
            MismatchError: the artifact is of another kind, or it was fine-tuned on other blocks.
            ResourceError: it retrieves with BM25, and bm25s is not installed.
        """
        artifact = resolve(path, ("qa-model",))
        found = blocks_for(artifact, blocks)
        return cls(artifact, open_answerer(artifact, found, device=device, precision=precision), found)

    def answer(self, question: str, top: int = 3) -> QuestionAnswers:
        """Return the `top` best answers with different texts to a question.

        Raises:
            ConfigError: the question is empty, or `top` is below 1.

        Examples:
            >>> for answer in qa.answer("Who wrote it?", top=3):
            ...     print(answer.text, answer.score, answer.evidence.hit.probability)
        """
        return self.answer_batch([question], top)[0]

    def answer_batch(self, questions: Sequence[str], top: int = 3) -> list[QuestionAnswers]:
        """Return the answers to each question, in the order of the questions.

        Raises:
            ConfigError: a question is empty, or `top` is below 1.
        """
        require_questions(questions, "top", top)
        searcher, found = self._answerer.searcher, list[list[Answer]]()
        for tokens in batches(self._answerer.tokens(questions)):
            hits = searcher.search(tokens, self._answerer.reader_beam) if searcher else [[] for _ in tokens]
            found += self._answerer.answer(tokens, hits, top)
        return [
            QuestionAnswers(question, tuple(map(self._scored, answers)))
            for question, answers in zip(questions, found, strict=True)
        ]

    def search(self, question: str, k: int = 5) -> list[RetrievedBlock]:
        """Return the k best blocks for a question: see `TextSearch.search`. Raises ConfigError for a closed-book model."""
        return self._searchable().search(question, k)

    def search_batch(self, questions: Sequence[str], k: int = 5) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return scores and rows, both [n, k]: see `TextSearch.search_batch`. Raises ConfigError for a closed-book model."""
        return self._searchable().search_batch(questions, k)

    def _searchable(self) -> TextSearch:
        if self._search is None:
            raise ConfigError(
                f"{self.artifact} was fine-tuned with --retrieval none and retrieves no blocks. Use answer(), or load a "
                "model that was fine-tuned with retrieval."
            )
        return self._search

    def _scored(self, answer: Answer) -> ScoredAnswer:
        if self._search is None or answer.evidence is None:
            return ScoredAnswer(answer.text, answer.score, None)
        [hit] = self._search.retrieved([answer.evidence.hit])
        return ScoredAnswer(answer.text, answer.score, AnswerEvidence(hit, answer.evidence.start, answer.evidence.end))

    def __repr__(self) -> str:
        return f"<qa-model over {len(self.blocks)} blocks at {self.artifact.path}>"
