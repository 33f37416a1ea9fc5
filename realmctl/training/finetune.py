"""Fine-tuning: train a searcher's scores and a span reader on questions with answers; the block vectors are frozen.

The objective is ORQA's, or the likelihood in REALM's paper. ORQA's is the sum of two losses (Lee et al. 2019, sections 3
and 5.2; google-research orqa/models/orqa_model.py): the retriever's over the 5000 best blocks, and the reader's, one
softmax over all spans of the best five blocks with the retrieval score added. The paper's is p(y|x) = sum_z p(z|x) p(y|z,x)
over the blocks that are read. The objective is the same for every searcher.
Legend: Q questions, K blocks of the retriever's beam, R blocks that are read, B = Q * R, S spans.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer, tokenizer_folder, writing
from realmctl.artifacts.description import QA_MODEL, QaModelDescription, write_description
from realmctl.corpus.corpus import BlockTexts, TokenIds
from realmctl.execution import processes
from realmctl.execution.batches import slices
from realmctl.models.evaluating import evaluating
from realmctl.models.families.known import require_positions
from realmctl.models.inputs import TokenBatch, block_token_mask
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.models.precision import to_device
from realmctl.models.span_head import SpanReader, marginal_loss, reader_loss, retrieval_loss, within_block
from realmctl.questions.answer_search import AnswerSearch
from realmctl.questions.answers import AnswerTest, find_answer_tokens
from realmctl.questions.questions import Question, read_questions
from realmctl.retrieval.answering.offsets import char_offsets, covered
from realmctl.retrieval.names import NO_RETRIEVAL
from realmctl.retrieval.search.searcher import Searcher
from realmctl.tokens.scripts import JOINED_LETTER
from realmctl.training.closed_book import train_closed_book
from realmctl.training.data.cloze_questions import cloze_questions
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder, MixedDataOrder
from realmctl.training.evaluation.best_on_dev import BestOnDev, Reading
from realmctl.training.evaluation.best_weights import FOLDER
from realmctl.training.loop import train
from realmctl.training.monitoring.answers_in_reach import AnswersInReach
from realmctl.training.objective import Sums
from realmctl.training.settings.finetune import FinetuneSettings
from realmctl.training.starts.answering import starting_searcher, starting_span_reader

ANSWER_TEST: AnswerTest = "substring"
"""A block holds an answer as raw text, as in the official code, also within a longer word. Measures of recall compare whole words."""


@dataclass(frozen=True)
class FinetuneMicroBatch:
    """A micro-batch: questions, their retrieved rows, which rows contain an answer, and the inputs of the reader.

    `block_start` and `spans` have an entry per input of the reader [B]: the position of the block's first token, and the
    answers as (first, last) wordpieces of the block.
    """

    questions: list[TokenIds]
    rows_QK: NDArray[np.int64]
    correct_QK: Tensor
    joint: TokenBatch
    block_start: Tensor
    spans: list[list[tuple[int, int]]]
    questions_in_batch: int


class FinetuneObjective(Reading[FinetuneMicroBatch]):
    """Trains the searcher's learner and the reader on questions with answers.

    A plain answer is found in a block by its wordpieces, a regular expression by its matches. `cloze` are questions made
    from sentences, of which each step has `cloze_per_step`. The metrics count them like the others.
    """

    def __init__(
        self,
        searcher: Searcher,
        reader: SpanReader,
        questions: Sequence[Question],
        settings: FinetuneSettings,
        cloze: Sequence[Question] = (),
    ) -> None:
        self.searcher, self.reader, self.settings = searcher, reader, settings
        searcher.learner.requires_grad_(not settings.freeze_retriever)
        self.modules = nn.ModuleDict({"retriever": searcher.learner, "reader": reader})
        own = settings.retriever_lr
        self.lr_multipliers = {
            searcher.learner: searcher.lr_multiplier if own is None else own / settings.lr,
            **layer_lr_multipliers(reader.bert, settings.layer_decay),
        }
        self.texts = BlockTexts(block.text for block in searcher.corpus)
        self.own = processes.share(settings.batch_size, "questions")
        self._ask(questions, cloze)

    def on(self, questions: Sequence[Question]) -> FinetuneObjective:
        """Return an objective with the same searcher and reader, and other questions."""
        other = copy.copy(self)
        other._ask(questions)
        return other

    def _ask(self, asked: Sequence[Question], cloze: Sequence[Question] = ()) -> None:
        searcher, settings = self.searcher, self.settings
        self.questions = questions = [*asked, *cloze]
        self.tokens = searcher.tokens([question.question for question in questions])
        self.answers = [[ids.tolist() for ids in searcher.tokens(question.answers)] for question in questions]
        self.searches = [AnswerSearch(question, ANSWER_TEST) for question in questions]
        per_step = settings.cloze_per_step if cloze else 0
        order = DataOrder(len(asked), settings.batch_size - per_step, settings.seed)
        self.order = MixedDataOrder(order, DataOrder(len(cloze), per_step, settings.seed)) if per_step else order

    def draw(self, step: int) -> Sequence[FinetuneMicroBatch]:
        """Return this process's share of the batch of a step, with the blocks that the searcher currently finds."""
        batch: list[int] = self.order.batch(step).tolist()
        return self.parts(batch[self.own], len(batch))

    def parts(self, numbers: list[int], questions_in_batch: int) -> Sequence[FinetuneMicroBatch]:
        """Return micro-batches of these questions, by number, with the blocks that the searcher currently finds."""
        if self.settings.freeze_retriever:
            self.searcher.learner.eval()
        with evaluating(self.searcher.learner):
            tokens = [self.tokens[number] for number in numbers]
            _, rows_QK = self.searcher.nearest(tokens, self.settings.retriever_beam)
        return [
            self._part(numbers[part], rows_QK[part], questions_in_batch)
            for part in slices(len(numbers), self.settings.at_once)
        ]

    def _part(self, numbers: list[int], rows_QK: NDArray[np.int64], questions_in_batch: int) -> FinetuneMicroBatch:
        collator, settings = self.searcher.collator, self.settings
        read_QR = rows_QK[:, : settings.reader_beam]
        asked = [number for number in numbers for _ in range(read_QR.shape[1])]
        bodies = [self.searcher.corpus.tokens(row) for row in read_QR.ravel().tolist()]
        joint, block_start = collator.reader([self.tokens[number] for number in asked], bodies, settings.reader_length)
        room = (joint.lengths_B - 1 - block_start).tolist()
        places = zip(asked, read_QR.ravel().tolist(), room, strict=True)
        spans = [self._answers_in(number, row, width) for number, row, width in places]
        questions = [self.tokens[number] for number in numbers]
        return FinetuneMicroBatch(
            questions, rows_QK, self._correct(numbers, rows_QK), joint, block_start, spans, questions_in_batch
        )

    def _answers_in(self, number: int, row: int, room: int) -> list[tuple[int, int]]:
        """The answers within the first `room` wordpieces of a block, as (first, last) wordpieces.

        In scripts that join words an answer has other wordpieces inside a text than alone, so it is found by its characters there.
        """
        corpus, widest = self.searcher.corpus, self.settings.span_width
        if not self.questions[number].is_regex:
            found = find_answer_tokens(corpus.tokens(row)[:room], self.answers[number], widest)
            if found or not any(map(JOINED_LETTER.search, self.questions[number].answers)):
                return found
        matches = self.searches[number].spans(self.texts[row])
        return covered(char_offsets(corpus, self.searcher.wordpiece, row)[:room], matches, widest) if matches else []

    def _correct(self, numbers: list[int], rows_QK: NDArray[np.int64]) -> Tensor:
        """Whether each retrieved block holds an answer, bool [Q, K]."""
        pairs = zip(numbers, rows_QK.tolist(), strict=True)
        return torch.tensor([[self.searches[number](self.texts[row]) for row in rows] for number, rows in pairs])

    def loss(self, part: FinetuneMicroBatch) -> tuple[Tensor | None, Sums]:
        """The sum of the losses of the part's questions, divided by the number of questions in the batch.

        With a frozen retriever ORQA's objective is the reader's loss alone. Where no retrieved block holds an answer, the loss
        is None, or with the deviation `empty-steps` a loss of 0, with which the optimizer still steps.
        """
        device = next(self.reader.parameters()).device
        retrieval_QK = self.searcher.scores(part.questions, part.rows_QK)
        span_QRS, correct_QRS = self._spans(part, device)
        found_Q, readable_Q = part.correct_QK.any(1), correct_QRS.flatten(1).any(1)  # on the CPU
        correct_QK, correct_QRS = (to_device(tensor, device) for tensor in (part.correct_QK, correct_QRS))
        read_QR = retrieval_QK[:, : span_QRS.shape[1]]
        total_QRS = span_QRS + read_QR[:, :, None]
        teaches_Q = readable_Q
        if self.settings.objective == "paper":
            loss_Q = marginal_loss(total_QRS, read_QR, correct_QRS)
        else:
            loss_Q = reader_loss(total_QRS, correct_QRS)
            if not self.settings.freeze_retriever:
                loss_Q = retrieval_loss(retrieval_QK, correct_QK) + loss_Q
                teaches_Q = found_Q | readable_Q
        sums = self._metrics(total_QRS, correct_QRS, found_Q, readable_Q)
        teaches = "empty-steps" in self.settings.official or bool(teaches_Q.any())
        return (loss_Q.sum() / part.questions_in_batch if teaches else None), sums

    def _spans(self, part: FinetuneMicroBatch, device: torch.device) -> tuple[Tensor, Tensor]:
        """Span scores [Q, R, S], normalised within each block for the paper's objective, and on the CPU whether each span is an answer."""
        joint, start = part.joint.to(device), to_device(part.block_start, device)
        score_BS, (first_S, last_S) = self.reader.span_scores(
            joint, block_token_mask(joint, start), self.settings.span_width
        )
        number_of = {span: number for number, span in enumerate(zip(first_S.tolist(), last_S.tolist(), strict=True))}
        correct_BS = torch.zeros(score_BS.shape, dtype=torch.bool)
        for row, (offset, spans) in enumerate(zip(part.block_start.tolist(), part.spans, strict=True)):
            for first, last in spans:
                correct_BS[row, number_of[first + offset, last + offset]] = True
        if self.settings.objective == "paper":
            score_BS = within_block(score_BS)
        shape = len(part.rows_QK), -1, score_BS.shape[1]
        return score_BS.view(shape), correct_BS.view(shape)

    @staticmethod
    def _metrics(total_QRS: Tensor, correct_QRS: Tensor, found_Q: Tensor, readable_Q: Tensor) -> Sums:
        count = float(len(found_Q))
        chosen = total_QRS.detach().flatten(1).argmax(1, keepdim=True)
        right = correct_QRS.flatten(1).gather(1, chosen).float().sum()
        return {
            "answer_in_beam": (float(found_Q.float().sum()), count),
            "answer_in_reader": (float(readable_Q.float().sum()), count),
            "span_exact_match": (right, count),
        }


def finetune(settings: FinetuneSettings, out: Writer) -> dict[str, float]:
    """Fine-tune on questions, and write the qa-model. Returns metrics."""
    asked = read_questions(settings.questions, is_regex=settings.regex_answers, answer_field=settings.answer_field)
    settings = settings.with_steps(len(asked), settings.batch_size - settings.cloze_per_step)
    if settings.retrieval == NO_RETRIEVAL:
        metrics = train_closed_book(settings, asked, out)
    else:
        metrics = _train_to_read(settings, asked, out)
    closed = settings.retrieval == NO_RETRIEVAL
    described = QaModelDescription(
        answerer="closed-book" if closed else "extractive",
        searcher=None if closed else settings.retrieval,
        objective="closed-book" if closed else settings.objective,
        reader_beam=0 if closed else settings.reader_beam,
        reader_length=settings.reader_length,
        span_width=settings.span_width,
    )
    write_description(out.file(QA_MODEL), described)
    return {"questions": len(asked), **metrics}


def _train_to_read(settings: FinetuneSettings, asked: Sequence[Question], out: Writer) -> dict[str, float]:
    """Train searcher and reader, on cloze questions too if sentences are given, and keep the best weights if there is a dev set."""
    searcher, reader = starting_searcher(settings), starting_span_reader(settings)
    require_positions(reader.bert, settings.reader_length, f"--reader-length {settings.reader_length}")
    cloze: Sequence[Question] = ()
    if settings.spans is not None:  # as many as the steps have, if the sentences suffice
        count = settings.steps * settings.cloze_per_step
        cloze = cloze_questions(settings.spans, count, generator(settings.seed, Stream.CLOZE_QUESTIONS))
    tuning = FinetuneObjective(searcher, reader, asked, settings, cloze)
    watch = AnswersInReach(settings, searcher)
    if settings.dev is None:
        metrics = train(tuning, settings, out, "finetune", [watch])
    else:
        dev = read_questions(settings.dev, is_regex=settings.regex_answers, answer_field=settings.answer_field)
        best = BestOnDev(tuning.on(dev), settings, out.scratch(FOLDER))
        metrics = train(tuning, settings, out, "finetune", [watch, best])
        metrics |= best.take(metrics["steps"])
    searcher.save(out)
    with writing(out.path / "reader", dataclasses.replace(out.origin, kind="span-reader")) as part:
        reader.cpu().save(part.path)
        part.copy_folder(".", tokenizer_folder(searcher.corpus.artifact))
    return metrics
