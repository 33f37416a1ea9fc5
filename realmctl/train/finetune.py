"""ORQA fine-tuning: retrieve with a query encoder that learns, read with a span reader that learns; block vectors frozen.

Two losses (Lee et al. 2019, sections 3 and 5.2; google-research orqa/models/orqa_model.py): the retriever's, over the
5000 best blocks, and the reader's, in one softmax over all spans of the best five, retrieval score inside.
Legend: Q questions, K blocks of the retriever's beam, R blocks that are read, S spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.nn.inputs import Packed, block_token_mask
from realmctl.nn.span_head import SpanReader, reader_loss, retrieval_loss
from realmctl.retrieval.corpus import Ids
from realmctl.retrieval.qa import QUESTION_LENGTH, Searcher
from realmctl.text.answers import AnswerTest, find_answer_tokens, has_answer
from realmctl.text.questions import Question
from realmctl.train.loop import SelfContained, Sums
from realmctl.train.order import Order


@dataclass(frozen=True)
class Options:
    """What decides the objective; see the stage's settings."""

    batch_size: int
    retriever_beam: int
    reader_beam: int
    reader_length: int
    span_width: int
    answer_test: AnswerTest
    seed: int


@dataclass(frozen=True)
class Asked:
    """A question in wordpieces, with every answer in wordpieces."""

    question: Question
    tokens: Ids
    answers: list[list[int]]


@dataclass(frozen=True)
class Part:
    """A micro-batch: questions, their retrieved rows, which of those hold an answer, and the inputs of the reader."""

    queries: Packed
    rows_QK: NDArray[np.int64]
    correct_QK: Tensor
    joint: Packed
    block_start: Tensor
    spans: list[list[tuple[int, int]]]
    questions_in_batch: int


class FineTuning(SelfContained):
    """Trains the query tower and the reader on questions with answers."""

    def __init__(self, searcher: Searcher, reader: SpanReader, questions: Sequence[Question], options: Options, micro_batch: int) -> None:
        self.searcher, self.reader, self.options = searcher, reader, options
        self.modules = nn.ModuleDict({"retriever": searcher.retriever, "reader": reader})
        self.micro_batch = micro_batch or options.batch_size
        self.asked = [self._ask(question) for question in questions]
        self.order = Order(len(self.asked), options.batch_size, options.seed)
        self.holds = lru_cache(maxsize=2**20)(self._holds)

    def _ask(self, question: Question) -> Asked:
        tokens = self.searcher.tokens([question.question])[0]
        answers = [] if question.is_regex else [[int(t) for t in ids] for ids in self.searcher.tokens(question.answers)]
        return Asked(question, tokens, answers)

    @cached_property
    def texts(self) -> list[str]:
        """The text of every block: what the official supervision looks for answers in. Loaded once, when needed."""
        return [record["text"] for record in self.searcher.corpus.records]

    def _holds(self, number: int, row: int) -> bool:
        asked = self.asked[number]
        if asked.question.is_regex:
            return has_answer(self.texts[row], asked.question.answers, "regex")
        return has_answer(self.texts[row], asked.question.answers, self.options.answer_test)

    def draw(self, step: int) -> Sequence[Part]:
        """Retrieve for the batch with the query encoder as it is now."""
        numbers = [int(number) for number in self.order.batch(step)]
        self.searcher.retriever.eval()
        hits = self.searcher.search([self.asked[number].tokens for number in numbers], self.options.retriever_beam)
        self.searcher.retriever.train()
        rows_QK = np.array([[hit.row for hit in found] for found in hits], dtype=np.int64)
        cuts = range(0, len(numbers), self.micro_batch)
        return [self._part(numbers[i : i + self.micro_batch], rows_QK[i : i + self.micro_batch], len(numbers)) for i in cuts]

    def _part(self, numbers: list[int], rows_QK: NDArray[np.int64], questions_in_batch: int) -> Part:
        packer, corpus, options = self.searcher.packer, self.searcher.corpus, self.options
        tokens = [self.asked[number].tokens for number in numbers]
        correct = [[self.holds(number, int(row)) for row in rows] for number, rows in zip(numbers, rows_QK, strict=True)]
        read = rows_QK[:, : options.reader_beam]
        bodies = [corpus.tokens(int(row)) for row in read.flat]
        joint, block_start = packer.reader([t for t in tokens for _ in range(read.shape[1])], bodies, options.reader_length)
        room = (joint.lengths_B - 1 - block_start).tolist()
        answers = [self.asked[number].answers for number in numbers for _ in range(read.shape[1])]
        spans = [find_answer_tokens(body[:most], wanted, options.span_width) for body, most, wanted in zip(bodies, room, answers, strict=True)]
        queries = packer.query(tokens, QUESTION_LENGTH)
        return Part(queries, rows_QK, torch.tensor(correct), joint, block_start, spans, questions_in_batch)

    def loss(self, part: Part) -> tuple[Tensor | None, Sums]:
        """Sum of both losses over the part's questions, over the questions of the batch; None when no answer was in reach."""
        device = next(self.reader.parameters()).device
        correct_QK = part.correct_QK.to(device)
        query_QD = self.searcher.retriever.embed_queries(part.queries.to(device))
        block_QKD = torch.from_numpy(self.searcher.index.vectors(part.rows_QK)).to(device)
        retrieval_QK = torch.einsum("qd,qkd->qk", query_QD.float(), block_QKD)
        span_QRS, correct_QRS = self._spans(part, device)
        total_QRS = span_QRS + retrieval_QK[:, : span_QRS.shape[1], None]
        loss = (retrieval_loss(retrieval_QK, correct_QK) + reader_loss(total_QRS, correct_QRS)).sum() / part.questions_in_batch
        found_Q, readable_Q = correct_QK.any(1), correct_QRS.flatten(1).any(1)
        sums = self._metrics(total_QRS, correct_QRS, found_Q, readable_Q)
        return (loss if bool((found_Q | readable_Q).any()) else None), sums

    def _spans(self, part: Part, device: torch.device) -> tuple[Tensor, Tensor]:
        """Span scores [Q, R, S] and which spans are an answer, bool."""
        joint, start = part.joint.to(device), part.block_start.to(device)
        score_BS, (first_S, last_S) = self.reader.span_scores(joint, block_token_mask(joint, start), self.options.span_width)
        place = {pair: at for at, pair in enumerate(zip(first_S.tolist(), last_S.tolist(), strict=True))}
        correct_BS = torch.zeros(score_BS.shape, dtype=torch.bool)
        for row, (offset, spans) in enumerate(zip(part.block_start.tolist(), part.spans, strict=True)):
            for first, last in spans:
                correct_BS[row, place[first + offset, last + offset]] = True
        questions = len(part.rows_QK)
        return score_BS.view(questions, -1, score_BS.shape[1]), correct_BS.to(device).view(questions, -1, score_BS.shape[1])

    @staticmethod
    def _metrics(total_QRS: Tensor, correct_QRS: Tensor, found_Q: Tensor, readable_Q: Tensor) -> Sums:
        count = float(len(found_Q))
        chosen = total_QRS.detach().flatten(1).argmax(1, keepdim=True)
        right = correct_QRS.flatten(1).gather(1, chosen).float().sum()
        return {
            "answer_in_beam": (float(found_Q.float().sum()), count),
            "answer_in_reader": (float(readable_Q.float().sum()), count),
            "span_exact_match": (float(right), count),
        }


