"""Closed-book fine-tuning: the masked language model learns to fill in answers without reading documents.

The masks follow the question. There are as many masks as the answer has wordpieces, and each is predicted on its own. The loss of a question is the mean
-log p of those wordpieces. For a question with several answers, one is drawn at each step.
Legend: B questions, M masks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

from realmctl.artifacts import Writer, tokenizer_folder, writing
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.log import warn
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.models.precision import to_device
from realmctl.models.reader import Reader
from realmctl.questions.questions import Question
from realmctl.spans.query import hide_answer
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.loop import train
from realmctl.training.objective import Objective, Sums
from realmctl.training.settings.finetune import FinetuneSettings
from realmctl.training.starts.answering import answering_masked_lm


class ClosedBookObjective(Objective[tuple[QueryBatch, int]]):
    """Trains the whole reader. Answers longer than `span_width` wordpieces and regular expressions are left out.

    Raises ConfigError when no answer is left.
    """

    def __init__(
        self, reader: Reader, words: Tokenizer, questions: Sequence[Question], settings: FinetuneSettings
    ) -> None:
        self.modules = nn.ModuleDict({"reader": reader})
        self.reader, self.settings, self.collator = reader, settings, Collator.of(words)
        self.lr_multipliers = layer_lr_multipliers(reader.mlm.base_model, settings.layer_decay)
        answers = [_answers(words, question, settings.span_width) for question in questions]
        kept = [number for number, known in enumerate(answers) if known]
        _report_dropped(len(questions) - len(kept), len(questions), settings.span_width)
        self.tokens = [words.ids(questions[number].question).astype(np.int64) for number in kept]
        self.answers = [answers[number] for number in kept]
        self.order = DataOrder(len(kept), settings.batch_size, settings.seed)
        self.own = processes.share(settings.batch_size, "questions")

    def draw(self, step: int) -> Sequence[tuple[QueryBatch, int]]:
        """Micro-batches of this process, with one answer drawn for each question, and the questions of the whole batch."""
        rng = generator(self.settings.seed, Stream.QUERY_MASKS, step)
        chosen = [(n, int(rng.integers(len(self.answers[n])))) for n in self.order.batch(step).tolist()]
        length, mask_id = self.settings.reader_length, self.collator.mask_id
        asked = [
            hide_answer(self.tokens[n], self.answers[n][k], mask_id, length - AROUND_ONE) for n, k in chosen[self.own]
        ]
        parts = batched(asked, self.settings.at_once)
        return [(self.collator.queries(part, length), len(chosen)) for part in parts]

    def loss(self, part: tuple[QueryBatch, int]) -> tuple[Tensor | None, Sums]:
        """The sum of the losses of the part's questions, divided by the number of questions in the batch."""
        batch, questions_in_batch = part
        device = next(self.reader.parameters()).device
        hidden_BM, position_BM, target_BM = (
            to_device(tensor, device) for tensor in (batch.hidden_BM, batch.position_BM, batch.target_BM)
        )
        log_prob_BM = self.reader.mlm_log_prob(batch.packed.to(device), position_BM, target_BM, 1)[:, 0]
        log_prob_BM = log_prob_BM.masked_fill(~hidden_BM, 0.0)
        mean_B = log_prob_BM.sum(1) / hidden_BM.sum(1)
        probability = log_prob_BM.detach().sum(1).exp().sum()
        return -mean_B.sum() / questions_in_batch, {"answer_probability": (probability, float(len(mean_B)))}


def train_closed_book(settings: FinetuneSettings, questions: Sequence[Question], out: Writer) -> dict[str, float]:
    """Train the masked language model to fill in answers, and write it as the qa-model's only part, `reader`. Returns metrics."""
    reader = Reader.from_masked_lm(answering_masked_lm(settings, "required"))
    objective = ClosedBookObjective(reader, Tokenizer.load(settings.blocks.path), questions, settings)
    metrics = train(objective, settings, out, "finetune", chance=math.log(reader.mlm.config.vocab_size))
    with writing(out.path / "reader", dataclasses.replace(out.origin, kind="reader")) as part:
        reader.cpu().save(part.path)
        part.copy_folder(".", tokenizer_folder(settings.blocks))
    return metrics


def _answers(words: Tokenizer, question: Question, widest: int) -> list[TokenIds]:
    """Return the wordpieces of the answers that the model can learn."""
    texts = () if question.is_regex else question.answers
    answers = [words.ids(text).astype(np.int64) for text in texts]
    return [answer for answer in answers if 0 < len(answer) <= widest]


def _report_dropped(dropped: int, questions: int, widest: int) -> None:
    why = f"only regular expressions or answers of more than {widest} wordpieces (--span-width)"
    if dropped == questions:
        raise ConfigError(f"finetune --retrieval none: the questions have {why}, so there is nothing to learn from.")
    if dropped:
        warn(f"{dropped} of {questions} questions left out: {why}")
