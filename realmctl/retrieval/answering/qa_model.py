"""A fine-tuned model: questions in, answers with their evidence out. Tokens, search, reading and text meet here.

`ask`, `eval-em`, `serve` and Python answer through this class. How a qa-model reads is its answerer's affair, and where its
blocks come from its searcher's; `qa-model.json` names both.
"""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from realmctl import log
from realmctl.artifacts import Artifact
from realmctl.artifacts.description import describe_qa_model
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import ConfigError, InputError
from realmctl.execution.batches import batched
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index
from realmctl.pipeline.fields import check_precision
from realmctl.retrieval.answering.answerer import Answer, Answerer, AnsweringOptions
from realmctl.retrieval.blocks import ArtifactLike, BlocksLike, with_blocks
from realmctl.retrieval.names import ANSWERERS
from realmctl.retrieval.search.block_search import Hit, require_count
from realmctl.retrieval.search.reranking import Reranking
from realmctl.retrieval.search.searcher import searcher_type
from realmctl.retrieval.search.text_search import QUESTIONS_AT_ONCE, TextSearch, require_questions

SHOWN_AROUND = 160
"""Characters of a block that are shown on either side of an answer."""


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question with its answers and its retrieved blocks, both best first. A closed-book model retrieves none."""

    question: str
    answers: tuple[Answer, ...]
    hits: tuple[Hit, ...] = ()
    reranking: Reranking | None = None
    """What chose the hits."""

    @property
    def best(self) -> Answer:
        """The answer with the highest score. Raises InputError when there is no answer at all."""
        if not self.answers:
            raise InputError(f"There is no answer to {self.question[:200]!r}: {self.reason}.")
        return self.answers[0]

    @property
    def reason(self) -> str | None:
        """Why there is no answer; None if there is one."""
        if self.answers:
            return None
        if not self.hits:
            return "no block was retrieved"
        return (
            "beside the question the reader's input has no room for a text of the retrieved blocks, or they have none, or the "
            "language model wrote nothing; ask a shorter question"
        )

    def record(self) -> dict[str, object]:
        """The question and its answers as JSON values, each answer with the block that it was read from, if any."""
        told: dict[str, object] = {"reason": self.reason} if self.reason else {}
        told |= {"search": self.searched()} if self.reranking else {}
        return {"question": self.question, "answers": [*map(answer_record, self.answers)], **told}

    def searched(self) -> dict[str, str | int]:
        """What reranked, if anything did, as JSON values."""
        return self.reranking.told() if self.reranking else {}

    def __str__(self) -> str:
        return f"no answer: {self.reason}" if self.reason else answers_text(self.answers)


class Answering(TextSearch, ABC):
    """What answers questions: blocks, what finds them, and what reads them.

    reads: blocks read per question, at most.
    """

    reads: int

    @abstractmethod
    def tokens(self, questions: Sequence[str]) -> list[TokenIds]:
        """Return the tokens of questions to search with."""

    @abstractmethod
    def read(
        self, questions: Sequence[str], tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int
    ) -> list[list[Answer]]:
        """Return the `top` best answers with different texts to each question, best first; `hits` are its retrieved blocks."""

    def retrieved(
        self, questions: Sequence[str], tokens: Sequence[TokenIds], k: int, without: Sequence[int] = ()
    ) -> list[list[Hit]]:
        """Return the k best blocks of each question that are in none of the rows `without`, with p(z|x) among them.

        A reranker chooses which blocks these are. They keep the scores of the searcher, with which the model was fine-tuned.
        """
        if self._searcher is None:
            return [[] for _ in questions]
        depth = k if self.reranking is None else max(k, self.reranking.depth)
        nearest = [*zip(*self._searcher.nearest(tokens, depth + len(without)), strict=True)]
        kept = [np.flatnonzero(~np.isin(rows, without))[:depth] for _, rows in nearest]
        scores, rows = ([each[part][at] for each, at in zip(nearest, kept, strict=True)] for part in (0, 1))
        hits = self._searcher.hits(scores, rows)
        if self.reranking is None:
            return hits
        chosen = [[hit.row for hit in own[:k]] for own in self.reranking.hits(questions, hits)]
        places = [np.isin(own, best) for own, best in zip(rows, chosen, strict=True)]
        return self._searcher.hits(
            *([own[at] for own, at in zip(part, places, strict=True)] for part in (scores, rows))
        )

    def measures(self) -> dict[str, float]:
        """Return what the model measured of its answers so far, for `eval-em`."""
        return {}

    def ask(self, question: str, top: int = 3) -> AnsweredQuestion:
        """Return the `top` best answers with different texts to a question.

        Raises:
            ConfigError: the question is empty, or `top` is below 1.

        Examples:
            >>> for answer in qa.ask("Who wrote it?", top=3).answers:
            ...     print(answer.text, answer.score, answer.hit.probability)
        """
        return self.answer([question], top)[0]

    def answer(
        self, questions: Sequence[str], top: int = 3, *, k: int | None = None, batch_size: int = QUESTIONS_AT_ONCE
    ) -> list[AnsweredQuestion]:
        """Return the answers to each question, in the order of the questions.

        Args:
            questions: the questions.
            top: answers to each, with different texts.
            k: blocks retrieved for each; None for as many as are read.
            batch_size: questions that are searched and read together.

        Raises:
            ConfigError: a question is empty, or a number is below 1.
        """
        require_questions(questions, "top", top)
        require_count("batch_size", batch_size)
        if k is not None:
            require_count("k", k)
        found: list[AnsweredQuestion] = []
        for batch in batched(questions, batch_size):
            tokens = self.tokens(batch)
            hits = self.retrieved(batch, tokens, k or self.reads)
            answers = self.read(batch, tokens, hits, top)
            for question, best, own in zip(batch, answers, hits, strict=True):
                found.append(AnsweredQuestion(question, tuple(best), tuple(own), self.reranking))
        return found


class QaModel(Answering):
    """A model made by `finetune`, which answers questions.

    It reads blocks found by dense search or BM25, or none (closed book).

    Examples:
        >>> qa = realmctl.load_qa_model("artifacts/qa-model")
        >>> best = qa.ask("Who wrote it?").best
        >>> best.text, best.hit.block.title
    """

    def __init__(self, artifact: Artifact, answerer: Answerer, blocks: Corpus) -> None:
        super().__init__(answerer.searcher, blocks)
        self.artifact, self.answerer, self.reads = artifact, answerer, answerer.reader_beam

    @classmethod
    def open(
        cls,
        path: ArtifactLike,
        *,
        blocks: BlocksLike | None = None,
        index: ArtifactLike | None = None,
        reader_beam: int | None = None,
        device: str = "auto",
        precision: str = "auto",
        official_text: bool = False,
    ) -> Self:
        """Open a fine-tuned model with its blocks.

        Args:
            path: a series, a version or an open artifact.
            blocks: a series, a version or opened blocks; by default the series `blocks` beside the model's. Of a series the
                newest version is taken that fits the model and an index.
            index: index to search, or the model that holds it; by default the qa-model's own, or, for newer blocks, the newest
                of the series `index` beside the blocks.
            reader_beam: blocks read per question; None for as many as in fine-tuning.
            device: auto, cpu or cuda:N.
            precision: arithmetic of encoder and reader: fp32, bf16, or auto for bf16 where it is faster.
            official_text: return the text of an answer as the official code does, whole words joined with spaces.

        Raises:
            InputError: a file is missing or damaged, or no blocks are named and none are found.
            MismatchError: an artifact is of another kind, or qa-model, index and blocks do not fit each other.
            ConfigError: its answerer or searcher is unknown here, or it does not use an index and one is passed.
            ResourceError: the package of its answerer or searcher cannot be imported.
        """
        check_precision(precision)
        artifact, held, other = with_blocks("qa-model", path, blocks, index)
        described = describe_qa_model(artifact)
        if index is not None and (described.searcher is None or not searcher_type(described.searcher).uses_index):
            raise ConfigError(f"{artifact} searches no index of vectors. Leave out the index.")
        options = AnsweringOptions(
            reader_beam=reader_beam,
            device=device,
            precision=precision,
            official_text=official_text,
            index=other,
        )
        answerer = ANSWERERS.load(described.answerer, Answerer).open(artifact, held, options)
        searcher = answerer.searcher
        return cls(artifact, answerer, searcher.corpus if searcher else Corpus(held))

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return the same model over other blocks. Both share their weights in memory; see `Searcher.over`."""
        other = copy.copy(self)
        other.blocks = Corpus(blocks)
        if self.answerer.searcher is not None:
            searcher = self.answerer.searcher.over(blocks, index, opener)
            other._searcher, other.answerer = searcher, self.answerer.with_searcher(searcher)
        return other

    def tokens(self, questions: Sequence[str]) -> list[TokenIds]:
        return self.answerer.tokens(questions)

    def read(
        self, questions: Sequence[str], tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int
    ) -> list[list[Answer]]:
        return self.answerer.answer(tokens, hits, top)

    def __repr__(self) -> str:
        return f"<qa-model over {len(self.blocks)} blocks at {self.artifact.path}>"


def answer_record(answer: Answer) -> dict[str, object]:
    """An answer as JSON values, with the block that it was read from, if any."""
    found: dict[str, object] = {"answer": answer.text, "score": answer.score}
    if answer.hit is not None:
        found |= {
            "probability_of_block": answer.hit.probability,
            "title": answer.hit.block.title,
            "block": answer.hit.block.id,
            "text": answer.hit.block.text,
            "start": answer.start,
            "end": answer.end,
        }
    return found


def answers_text(answers: Sequence[Answer]) -> str:
    """Answers for people, best first: each with its evidence, in which it is marked."""
    lines = []
    for rank, answer in enumerate(answers, 1):
        line = f"{rank}. {answer.text}   score {answer.score:.2f}"
        if answer.hit is None:
            lines.append(f"{line}   (closed book: no evidence)")
            continue
        lines.append(f"{line}   {answer.hit.block.title}   p(z|x) {answer.hit.probability:.3f}")
        lines.append(f"   {_marked(answer.hit.block.text, answer.start or 0, answer.end or 0)}")
    return "\n".join(lines) or "no answer"


def _marked(text: str, start: int, end: int) -> str:
    before, after = (log.BOLD, log.PLAIN) if sys.stdout.isatty() else (">>", "<<")
    left, right = max(0, start - SHOWN_AROUND), min(len(text), end + SHOWN_AROUND)
    shown = f"{text[left:start]}{before}{text[start:end]}{after}{text[end:right]}"
    return f"{'... ' if left else ''}{shown}{' ...' if right < len(text) else ''}".replace("\n", " ")
