"""Fine-tuning: train a searcher's scores and a span reader on questions with answers; the block vectors are frozen.

The objective is ORQA's, or the likelihood in REALM's paper. ORQA's is the sum of two losses (Lee et al. 2019, sections 3
and 5.2; google-research orqa/models/orqa_model.py): the retriever's over the 5000 best blocks, and the reader's, one
softmax over all spans of the best five blocks with the retrieval score added. The paper's is p(y|x) = sum_z p(z|x) p(y|z,x)
over the blocks that are read. Hard EM's is ORQA's, except that the reader learns from the likeliest mention of the answer alone
at a share of the steps which grows (Min et al. 2019; qa-hard-em modeling.py). The objective is the same for every searcher.
Legend: Q questions, K blocks of the retriever's beam, R blocks that are read, B = Q * R, S spans.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer, tokenizer_folder, writing
from realmctl.corpus.block_texts import BlockTexts
from realmctl.corpus.corpus import TokenIds
from realmctl.execution import processes
from realmctl.models.inputs import TokenBatch, block_token_mask
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.models.span_head import SpanReader, hard_em_loss, marginal_loss, reader_loss, retrieval_loss, within_block
from realmctl.questions.answer_search import AnswerSearch
from realmctl.questions.answers import AnswerTest, find_answer_tokens
from realmctl.questions.questions import Question
from realmctl.retrieval.answering.offsets import char_offsets, covered
from realmctl.retrieval.search.searcher import Searcher
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder, MixedDataOrder
from realmctl.training.monitoring.answers_in_reach import AnswersInReach
from realmctl.training.objective import SelfContained, Sums

MOST_HARD_EM = 0.8
"""Largest share of the steps that learn from the likeliest mention alone (qa-hard-em, modeling.py)."""


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions:
    """The settings of `finetune` that define the objective.

    retriever_lr_multiplier: learning rate of the retriever divided by that of the reader; None: that of the searcher.
    cloze_per_step: questions of each step that are cloze questions.
    """

    batch_size: int
    retriever_beam: int
    reader_beam: int
    reader_length: int
    span_width: int
    answer_test: AnswerTest
    seed: int
    freeze_retriever: bool = False
    objective: Literal["orqa", "paper", "hard-em"] = "orqa"
    hard_em_tau: int = 4000
    layer_decay: float = 1.0
    retriever_lr_multiplier: float | None = None
    empty_steps: bool = False
    steps: int = 0
    cloze_per_step: int = 0


@dataclass(frozen=True)
class FinetuneMicroBatch:
    """A micro-batch: questions, their retrieved rows, which rows contain an answer, and the inputs of the reader.

    `block_start` and `spans` have an entry per input of the reader [B]: the position of the block's first token, and the
    answers as (first, last) wordpieces of the block. `hard`: the reader learns from the likeliest mention alone.
    """

    questions: list[TokenIds]
    rows_QK: NDArray[np.int64]
    correct_QK: Tensor
    joint: TokenBatch
    block_start: Tensor
    spans: list[list[tuple[int, int]]]
    questions_in_batch: int
    hard: bool = False


class FinetuneObjective(SelfContained):
    """Trains the searcher's learner and the reader on questions with answers.

    A plain answer is found in a block by its wordpieces, a regular expression by its matches. `cloze` are questions made
    from sentences, of which each step has `cloze_per_step`. The metrics count them like the others.
    """

    def __init__(
        self,
        searcher: Searcher,
        reader: SpanReader,
        questions: Sequence[Question],
        options: FinetuneOptions,
        micro_batch: int = 0,
        cloze: Sequence[Question] = (),
    ) -> None:
        self.searcher, self.reader, self.options = searcher, reader, options
        searcher.learner.requires_grad_(not options.freeze_retriever)
        self.modules = nn.ModuleDict({"retriever": searcher.learner, "reader": reader})
        own = options.retriever_lr_multiplier
        self.lr_multipliers = {
            searcher.learner: searcher.lr_multiplier if own is None else own,
            **layer_lr_multipliers(reader.bert, options.layer_decay),
        }
        self.micro_batch = micro_batch or options.batch_size
        self.in_reach = AnswersInReach(options.batch_size, options.steps, options.retriever_beam, options.reader_beam)
        self.texts = BlockTexts(block.text for block in searcher.corpus)
        self.own = processes.share(options.batch_size, "questions")
        self._ask(questions, cloze)

    def on(self, questions: Sequence[Question]) -> FinetuneObjective:
        """Return an objective with the same searcher and reader, and other questions."""
        other = copy.copy(self)
        other._ask(questions)
        return other

    def _ask(self, asked: Sequence[Question], cloze: Sequence[Question] = ()) -> None:
        searcher, options = self.searcher, self.options
        self.questions = questions = [*asked, *cloze]
        self.tokens = searcher.tokens([question.question for question in questions])
        self.answers = [[ids.tolist() for ids in searcher.tokens(question.answers)] for question in questions]
        self.searches = [AnswerSearch(question, options.answer_test) for question in questions]
        per_step = options.cloze_per_step if cloze else 0
        order = DataOrder(len(asked), options.batch_size - per_step, options.seed)
        self.order = MixedDataOrder(order, DataOrder(len(cloze), per_step, options.seed)) if per_step else order

    def before_step(self, step: int) -> Mapping[str, float]:
        """Return the learned numbers of the searcher, which are logged."""
        return self.searcher.learnt()

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Warn when almost no question has an answer in the blocks."""
        self.in_reach.observe(line)
        return {}

    def draw(self, step: int) -> Sequence[FinetuneMicroBatch]:
        """Return this process's share of the batch of a step, with the blocks that the searcher currently finds."""
        batch: list[int] = self.order.batch(step).tolist()
        return self.parts(batch[self.own], len(batch), hard=self.is_hard(step))

    def is_hard(self, step: int) -> bool:
        """Whether a step learns from the likeliest mention alone, drawn with probability min(step / tau, 0.8)."""
        if self.options.objective != "hard-em":
            return False
        drawn = generator(self.options.seed, Stream.HARD_EM, step).random()
        return bool(drawn < min(step / self.options.hard_em_tau, MOST_HARD_EM))

    def parts(self, numbers: list[int], questions_in_batch: int, hard: bool = False) -> Sequence[FinetuneMicroBatch]:
        """Return micro-batches of these questions, by number, with the blocks that the searcher currently finds."""
        training = self.searcher.learner.training
        self.searcher.learner.eval()
        _, rows_QK = self.searcher.nearest([self.tokens[number] for number in numbers], self.options.retriever_beam)
        self.searcher.learner.train(training and not self.options.freeze_retriever)
        cuts = (slice(start, start + self.micro_batch) for start in range(0, len(numbers), self.micro_batch))
        return [
            dataclasses.replace(self._part(numbers[cut], rows_QK[cut], questions_in_batch), hard=hard) for cut in cuts
        ]

    def _part(self, numbers: list[int], rows_QK: NDArray[np.int64], questions_in_batch: int) -> FinetuneMicroBatch:
        collator, options = self.searcher.collator, self.options
        read_QR = rows_QK[:, : options.reader_beam]
        asked = [number for number in numbers for _ in range(read_QR.shape[1])]
        bodies = [self.searcher.corpus.tokens(row) for row in read_QR.ravel().tolist()]
        joint, block_start = collator.reader([self.tokens[number] for number in asked], bodies, options.reader_length)
        room = (joint.lengths_B - 1 - block_start).tolist()
        places = zip(asked, read_QR.ravel().tolist(), room, strict=True)
        spans = [self._answers_in(number, row, width) for number, row, width in places]
        questions = [self.tokens[number] for number in numbers]
        return FinetuneMicroBatch(
            questions, rows_QK, self._correct(numbers, rows_QK), joint, block_start, spans, questions_in_batch
        )

    def _answers_in(self, number: int, row: int, room: int) -> list[tuple[int, int]]:
        """The answers within the first `room` wordpieces of a block, as (first, last) wordpieces."""
        corpus, widest = self.searcher.corpus, self.options.span_width
        if not self.questions[number].is_regex:
            return find_answer_tokens(corpus.tokens(row)[:room], self.answers[number], widest)
        matches = self.searches[number].spans(self.texts[row])
        return covered(char_offsets(corpus, self.searcher.wordpiece, row)[:room], matches, widest) if matches else []

    def _correct(self, numbers: list[int], rows_QK: NDArray[np.int64]) -> Tensor:
        """Whether each retrieved block holds an answer, bool [Q, K]."""
        pairs = zip(numbers, rows_QK.tolist(), strict=True)
        return torch.tensor([[self.searches[number](self.texts[row]) for row in rows] for number, rows in pairs])

    def loss(self, part: FinetuneMicroBatch) -> tuple[Tensor | None, Sums]:
        """The sum of the losses of the part's questions, divided by the number of questions in the batch.

        With a frozen retriever ORQA's objective is the reader's loss alone. Where no retrieved block holds an answer, the loss
        is None, or with `empty_steps` a loss of 0, with which the optimizer still steps.
        """
        device = next(self.reader.parameters()).device
        retrieval_QK = self.searcher.scores(part.questions, part.rows_QK)
        span_QRS, correct_QRS = self._spans(part, device)
        found_Q, readable_Q = part.correct_QK.any(1), correct_QRS.flatten(1).any(1)  # on the CPU
        correct_QK, correct_QRS = (tensor.to(device, non_blocking=True) for tensor in (part.correct_QK, correct_QRS))
        read_QR = retrieval_QK[:, : span_QRS.shape[1]]
        total_QRS = span_QRS + read_QR[:, :, None]
        teaches_Q = readable_Q
        if self.options.objective == "paper":
            loss_Q = marginal_loss(total_QRS, read_QR, correct_QRS)
        else:
            loss_Q = (hard_em_loss if part.hard else reader_loss)(total_QRS, correct_QRS)
            if not self.options.freeze_retriever:
                loss_Q = retrieval_loss(retrieval_QK, correct_QK) + loss_Q
                teaches_Q = found_Q | readable_Q
        sums = self._metrics(total_QRS, correct_QRS, found_Q, readable_Q)
        if self.options.objective == "hard-em":
            sums = {**sums, "hard_em": (float(part.hard * len(found_Q)), float(len(found_Q)))}
        teaches = self.options.empty_steps or bool(teaches_Q.any())
        return (loss_Q.sum() / part.questions_in_batch if teaches else None), sums

    def _spans(self, part: FinetuneMicroBatch, device: torch.device) -> tuple[Tensor, Tensor]:
        """Span scores [Q, R, S], normalised within each block for the paper's objective, and on the CPU whether each span is an answer."""
        joint, start = part.joint.to(device), part.block_start.to(device, non_blocking=True)
        score_BS, (first_S, last_S) = self.reader.span_scores(
            joint, block_token_mask(joint, start), self.options.span_width
        )
        number_of = {span: number for number, span in enumerate(zip(first_S.tolist(), last_S.tolist(), strict=True))}
        correct_BS = torch.zeros(score_BS.shape, dtype=torch.bool)
        for row, (offset, spans) in enumerate(zip(part.block_start.tolist(), part.spans, strict=True)):
            for first, last in spans:
                correct_BS[row, number_of[first + offset, last + offset]] = True
        if self.options.objective == "paper":
            score_BS = within_block(score_BS)
        shape = len(part.rows_QK), -1, score_BS.shape[1]
        return score_BS.view(shape), correct_BS.view(shape)

    def save(self, out: Writer) -> None:
        """Write the parts of the qa-model: the searcher's, and `reader`."""
        self.searcher.save(out)
        with writing(out.path / "reader", dataclasses.replace(out.origin, kind="span-reader")) as part:
            self.reader.cpu().save(part.path)
            part.copy_folder(".", tokenizer_folder(self.searcher.corpus.artifact))

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
