"""Closed-book fine-tuning: the masked language model learns to fill in answers without reading documents.

The masks follow the question. There are as many masks as the answer has wordpieces, and each is predicted on its own. The loss of a question is the mean
-log p of those wordpieces. For a question with several answers, one is drawn at each step.
Legend: B questions, M masks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence, Sized
from functools import partial
from typing import TypeVar

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

Ids = TypeVar("Ids", bound=Sized)
"""Tokens of a text."""


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
        told = f"{settings.span_width} wordpieces (--span-width)"
        kept, self.answers = learnable(questions, partial(_ids, words), settings.span_width, told)
        self.tokens = [_ids(words, question.question) for question in kept]
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


def _ids(words: Tokenizer, text: str) -> TokenIds:
    return words.ids(text).astype(np.int64)


def learnable(
    questions: Sequence[Question], ids_of: Callable[[str], Ids], longest: int, told: str
) -> tuple[list[Question], list[list[Ids]]]:
    """Return the questions whose answers can be learned by heart, and the tokens of those answers. A warning counts the others.

    Args:
        questions: The questions, one or more.
        ids_of: Returns the tokens of an answer.
        longest: Most tokens of an answer that is learned.
        told: The same in words, with its option.

    Raises:
        ConfigError: No question has such an answer.
    """
    kept, answers = [], []
    for question in questions:
        texts = () if question.is_regex else question.answers
        if known := [ids for ids in map(ids_of, texts) if 0 < len(ids) <= longest]:
            kept.append(question)
            answers.append(known)
    why = f"only regular expressions or answers of more than {told}"
    if not kept:
        raise ConfigError(f"The questions have {why}, so there is nothing to learn from. Give others.")
    if dropped := len(questions) - len(kept):
        warn(f"{dropped} of {len(questions)} questions left out: {why}")
    return kept, answers
