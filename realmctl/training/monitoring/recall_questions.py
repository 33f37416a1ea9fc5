"""Recall of the retriever in training on a few questions, measured whenever the index changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts.arrays import evenly_spaced
from realmctl.corpus.corpus import Corpus
from realmctl.index.protocol import Index
from realmctl.models.evaluating import evaluating
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.questions.answer_search import AnswerSearch
from realmctl.questions.questions import Question
from realmctl.retrieval.embedding.embedding import embed_questions
from realmctl.tokens.tokenizer import Tokenizer

MAX_QUESTIONS = 300
"""Largest number of questions. They are evenly spaced over the file."""
DEPTHS = (1, 5, 20)
QUESTIONS_AT_ONCE = 64


class RecallQuestions:
    """Recall of a retriever on some questions, computed as `eval-em` does: in `precision`, and with answers as whole words."""

    def __init__(
        self, questions: Sequence[Question], corpus: Corpus, collator: Collator, precision: str = "fp32"
    ) -> None:
        asked = [questions[place] for place in evenly_spaced(len(questions), MAX_QUESTIONS)]
        words = Tokenizer.load(corpus.artifact.path)
        self._tokens = words.tokens([each.question for each in asked])
        self._answers = [AnswerSearch(question, "tokens") for question in asked]
        self._corpus, self._collator, self._precision = corpus, collator, precision

    def recall(self, retriever: Retriever, index: Index) -> dict[str, float]:
        """Return `recall@1`, `recall@5` and `recall@20`. It draws no random number and restores the retriever's mode."""
        rank_B = self._ranks(index.search(self._embedded(retriever), max(DEPTHS))[1])
        return {f"recall@{depth}": float((rank_B < depth).mean()) for depth in DEPTHS}

    def _embedded(self, retriever: Retriever) -> NDArray[np.float32]:
        with evaluating(retriever):
            return embed_questions(
                retriever, self._collator, self._tokens, precision=self._precision, batch_size=QUESTIONS_AT_ONCE
            )

    def _ranks(self, rows_BK: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rank of the first block that contains an answer, from 0; infinity if none does. float64 [B]."""
        blocks = self._corpus.blocks(set(rows_BK.ravel().tolist()))
        ranks = [
            next((rank for rank, row in enumerate(rows) if holds(blocks[row].text)), np.inf)
            for holds, rows in zip(self._answers, rows_BK.tolist(), strict=True)
        ]
        return np.array(ranks, dtype=np.float64)
