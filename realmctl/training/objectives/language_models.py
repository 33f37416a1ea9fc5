"""Training of a language model on pairs of texts: closed-book questions, or sentences with a hidden salient span.

The loss is the mean -log p of the target's tokens over the whole batch, which is transformers' own loss.
Sources: Roberts et al. 2020 (arXiv 2002.08910), sections 2 and 3; Raffel et al. 2020 (arXiv 1910.10683), section 3.1.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from torch import Tensor, nn

from realmctl.errors import ConfigError, InputError
from realmctl.log import warn
from realmctl.models.lm.model import LanguageModel, SourceTargetBatch
from realmctl.models.lm.prompts import answer_ids, prompt_ids
from realmctl.questions.questions import Question
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.objective import SelfContained, Sums

Pair = tuple[list[int], list[int]]
"""Tokens of a source and of a target."""
SENTINELS = ("<extra_id_0>", "<extra_id_1>")
"""T5's sentinels: the first stands for the hidden span, the second ends the target."""


class PairSource(Protocol):
    """The texts that a language model is trained on."""

    def __len__(self) -> int: ...

    def draw(self, number: int, rng: np.random.Generator) -> Pair:
        """Return example `number`."""
        ...


class LanguageModelObjective(SelfContained):
    """Cross-entropy of targets after their sources. All weights are trained."""

    def __init__(
        self, model: LanguageModel, pairs: PairSource, *, batch_size: int, micro_batch: int, seed: int
    ) -> None:
        self.modules = nn.ModuleDict({"language-model": model})
        self.model, self.pairs, self.seed = model, pairs, seed
        self.micro_batch = micro_batch or batch_size
        self.order = DataOrder(len(pairs), batch_size, seed)

    def draw(self, step: int) -> Sequence[tuple[SourceTargetBatch, int]]:
        """Micro-batches, each with the number of tokens to predict in the whole batch."""
        rng = generator(self.seed, Stream.QUERY_MASKS, step)
        drawn = [self.pairs.draw(int(number), rng) for number in self.order.batch(step)]
        parts = [drawn[start : start + self.micro_batch] for start in range(0, len(drawn), self.micro_batch)]
        batches = [self.model.batch(*map(list, zip(*part, strict=True))) for part in parts]
        wanted = sum(batch.wanted for batch in batches)
        return [(batch, wanted) for batch in batches]

    def loss(self, part: tuple[SourceTargetBatch, int]) -> tuple[Tensor | None, Sums]:
        """The sum of -log p over the part's target tokens, divided by their number in the batch; and the accuracy."""
        batch, wanted = part
        log_prob_BL, right_BL = self.model(batch.to(next(self.model.parameters()).device))
        return -log_prob_BL.sum() / wanted, {"accuracy": (right_BL.sum(), float(batch.wanted))}


class ClosedBookPairs:
    """Questions in the form of a prompt, each with one of its answers, drawn anew at each step.

    Regular expressions and answers of more than `answer_length` tokens are left out. Raises ConfigError when none is left.
    """

    def __init__(
        self,
        model: LanguageModel,
        questions: Sequence[Question],
        *,
        prompt: str,
        question_length: int,
        answer_length: int,
    ) -> None:
        texts = [() if question.is_regex else question.answers for question in questions]
        known = [
            [ids for text in answers if 0 < len(ids := answer_ids(model, text)) <= answer_length] for answers in texts
        ]
        kept = [number for number, answers in enumerate(known) if answers]
        why = f"only regular expressions or answers of more than {answer_length} tokens (--answer-length)"
        if not kept:
            raise ConfigError(f"lm-finetune: the questions have {why}, so there is nothing to learn from.")
        if len(kept) < len(questions):
            warn(f"{len(questions) - len(kept)} of {len(questions)} questions left out: {why}")
        self.sources = [prompt_ids(model, questions[number].question, prompt, question_length) for number in kept]
        self.answers = [known[number] for number in kept]

    def __len__(self) -> int:
        return len(self.sources)

    def draw(self, number: int, rng: np.random.Generator) -> Pair:
        """Question `number` with one of its answers."""
        answers = self.answers[number]
        return self.sources[number], answers[int(rng.integers(len(answers)))]


class SalientSpanPairs:
    """Tagged sentences in T5's format: one salient span becomes `<extra_id_0>`, and the target is the span between sentinels.

    The span is drawn anew at each step. Raises InputError for a model without sentinels, such as GPT-2.
    """

    def __init__(self, model: LanguageModel, queries: TaggedQueries, length: int) -> None:
        hidden_id, end_id = map(model.tokenizer.token_to_id, SENTINELS)
        if hidden_id is None or end_id is None or not model.reads_source_apart:
            raise InputError(
                "lm-init hides spans in T5's format, which needs a sequence-to-sequence model whose tokenizer has the "
                f"sentinels {' and '.join(SENTINELS)}. This model has not. Fine-tune it without lm-init, or use a T5."
            )
        self.model, self.records, self.length = model, queries.records, length
        self.hidden_id, self.count = hidden_id, len(queries)

    def __len__(self) -> int:
        return self.count

    def draw(self, number: int, rng: np.random.Generator) -> Pair:
        """Sentence `number`; the source is cut to the room around the hidden span."""
        record = self.records[number]
        start, end = record["spans"][int(rng.integers(len(record["spans"])))][:2]
        text, (hidden, last) = record["text"], SENTINELS
        source = self.model.ids(f"{text[:start]}{hidden}{text[end:]}")
        first = max(0, source.index(self.hidden_id) - self.length + 2)
        return source[first : first + self.length - 1], self.model.ids(f"{hidden} {text[start:end]} {last}")
