"""Training of a language model on pairs of texts: closed-book questions, or sentences with a hidden salient span.

The loss is the mean -log p of the target's tokens over the whole batch, which is transformers' own loss.
Sources: Roberts et al. 2020 (arXiv 2002.08910), sections 2 and 3; Raffel et al. 2020 (arXiv 1910.10683), section 3.1.4.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from torch import Tensor, nn

from realmctl.artifacts import Writer, writing
from realmctl.artifacts.description import QA_MODEL, write_description
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.execution.batches import batched
from realmctl.extras.practice.reading_practice import RANDOM_BLOCK, partners
from realmctl.lab.language_models.generative import PART, GenerativeDescription
from realmctl.lab.language_models.models.files import load_language_model, save_language_model
from realmctl.lab.language_models.models.known import reader_of
from realmctl.lab.language_models.models.model import LanguageModel, SourceTargetBatch
from realmctl.lab.language_models.models.prompts import (
    BlockPrompt,
    answer_ids,
    check_positions,
    check_prompt,
    default_prompt,
    prompt_ids,
)
from realmctl.lab.language_models.models.reading import ReadBlock, ReadingLimits
from realmctl.lab.language_models.settings import LmFinetuneSettings, LmInitSettings
from realmctl.models.inputs import TokenSequence
from realmctl.models.precision import seed_everything
from realmctl.questions.questions import Question, read_questions
from realmctl.spans.query import HiddenText
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.training.closed_book import learnable
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.loop import train
from realmctl.training.objective import Objective, Sums
from realmctl.training.settings.base import TrainSettings

Pair = tuple[TokenSequence, TokenSequence]
"""Tokens of a source and of a target."""


class PairSource(Protocol):
    """The texts that a language model is trained on. ended: whether the end-of-text token is added to every target."""

    ended: bool

    def __len__(self) -> int: ...

    def draw(self, number: int, rng: np.random.Generator) -> Pair:
        """Return example `number`."""
        ...


class LanguageModelObjective(Objective[tuple[SourceTargetBatch, int]]):
    """Cross-entropy of targets after their sources. All weights are trained."""

    def __init__(self, model: LanguageModel, pairs: PairSource, settings: TrainSettings) -> None:
        self.modules = nn.ModuleDict({"language-model": model})
        self.model, self.pairs, self.settings = model, pairs, settings
        self.order = DataOrder(len(pairs), settings.batch_size, settings.seed)

    def draw(self, step: int) -> Sequence[tuple[SourceTargetBatch, int]]:
        """Micro-batches, each with the number of tokens to predict in the whole batch."""
        rng = generator(self.settings.seed, Stream.QUERY_MASKS, step)
        drawn = [self.pairs.draw(int(number), rng) for number in self.order.batch(step)]
        parts = batched(drawn, self.settings.at_once)
        batches = [self.model.batch(*map(list, zip(*part, strict=True)), ended=self.pairs.ended) for part in parts]
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

    ended = True

    def __init__(
        self,
        model: LanguageModel,
        questions: Sequence[Question],
        *,
        prompt: str,
        question_length: int,
        answer_length: int,
    ) -> None:
        told = f"{answer_length} tokens (--answer-length)"
        kept, self.answers = learnable(questions, lambda text: answer_ids(model, text), answer_length, told)
        self.sources = [prompt_ids(model, question.question, prompt, question_length) for question in kept]

    def __len__(self) -> int:
        return len(self.sources)

    def draw(self, number: int, rng: np.random.Generator) -> Pair:
        """Question `number` with one of its answers."""
        answers = self.answers[number]
        return self.sources[number], answers[int(rng.integers(len(answers)))]


class SalientSpanPairs:
    """Tagged sentences, each with one salient span hidden, which is drawn anew at each step: T5 writes it between sentinels, and a causal model
    goes on with it where its sentence breaks off.

    With a corpus it is copy pre-training: a sentence stands behind the block that restates it, or for some behind a random block, as in
    `reading_practice`. T5 writes a span that the block tells, and a causal model the whole sentence, so that each of its tokens teaches to
    read. Sentences that no block restates are left out.

    Raises InputError for a sequence-to-sequence model without T5's sentinels, such as a BART, and where no block restates a sentence.
    """

    ended = False  # a causal model's sentence does not end with its span, and T5's target has its end already

    def __init__(self, model: LanguageModel, queries: TaggedQueries, length: int, corpus: Corpus | None = None) -> None:
        self.reader = reader_of(model, BlockPrompt(), ReadingLimits(length, length - 2))
        self.reader.require_pairs()
        self.records, self.corpus = queries.records, corpus
        self.partners = np.full(len(queries), -1) if corpus is None else partners(queries, corpus)[:, 0]
        self.rows = np.arange(len(queries)) if corpus is None else np.flatnonzero(self.partners >= 0)
        if corpus is not None and not len(self.rows):
            raise InputError(
                f"No block of {corpus.artifact} restates a sentence of {queries.artifact}: none shares a rare wordpiece with one, so there "
                "is nothing to practise. Use a corpus that repeats its facts, or leave --blocks out."
            )

    def __len__(self) -> int:
        return len(self.rows)

    def draw(self, number: int, rng: np.random.Generator) -> Pair:
        """Sentence `number`; the source is cut to the room around the hidden span, and its block to the room that is left."""
        row = int(self.rows[number])
        text, passage = self.records[row]["text"], self._passage(row, rng)
        spans = [tuple(span[:2]) for span in self.records[row]["spans"]]
        if passage and not self.reader.model.reads_source_apart:
            spans = [(0, len(text))]
        elif passage:
            spans = [span for span in spans if text[slice(*span)] in passage.text] or spans
        source, target = self.reader.pair(HiddenText.of(text, *spans[int(rng.integers(len(spans)))]))
        return self.reader.input(self.reader.fitted(passage, source, len(target)), source), target

    def _passage(self, row: int, rng: np.random.Generator) -> ReadBlock | None:
        if self.corpus is None:
            return None
        random = rng.random() < RANDOM_BLOCK
        block = self.corpus[int(rng.integers(len(self.corpus))) if random else int(self.partners[row])]
        return ReadBlock(block.title, block.text)


def train_on_spans(settings: LmInitSettings, out: Writer) -> dict[str, float]:
    """Pre-train a language model to write hidden salient spans, and write the model. Returns metrics."""
    model = load_language_model(Path(settings.lm), settings.dropout)
    check_positions(model, settings.length, "--length")
    seed_everything(settings.seed)
    corpus = Corpus(settings.blocks) if settings.blocks else None
    pairs = SalientSpanPairs(model, TaggedQueries(settings.spans, corpus), settings.length, corpus)
    metrics = train(LanguageModelObjective(model, pairs, settings), settings, out, "lm-init", chance=_chance(model))
    save_language_model(model.cpu(), out.path)
    return {"sentences": len(pairs), **metrics}


def train_on_questions(settings: LmFinetuneSettings, out: Writer) -> dict[str, float]:
    """Fine-tune a language model as a closed-book answerer, and write the qa-model. Returns metrics."""
    asked = read_questions(settings.questions, is_regex=settings.regex_answers, answer_field=settings.answer_field)
    start = settings.language_model.path if settings.language_model else Path(str(settings.lm))
    model = load_language_model(start, settings.dropout)
    seed_everything(settings.seed)
    prompt, question_length, answer_length = (
        settings.prompt or default_prompt(model),
        settings.question_length,
        settings.answer_length,
    )
    check_prompt(model, prompt, question_length)
    check_positions(model, question_length + answer_length + 1, "--question-length and --answer-length")
    pairs = ClosedBookPairs(model, asked, prompt=prompt, question_length=question_length, answer_length=answer_length)
    counted = settings.with_steps(len(pairs), settings.batch_size)
    metrics = train(LanguageModelObjective(model, pairs, counted), counted, out, "lm-finetune", chance=_chance(model))
    with writing(out.path / PART, dataclasses.replace(out.origin, kind=PART)) as part:
        save_language_model(model.cpu(), part.path)
    described = GenerativeDescription(
        answerer="generative",
        searcher=None,
        objective="closed-book",
        reader_beam=0,
        beams=settings.beams,
        prompt=prompt,
        reader_length=question_length,
        span_width=answer_length,
    )
    write_description(out.file(QA_MODEL), described)
    return {"questions": len(asked), **metrics}


def _chance(model: LanguageModel) -> float:
    """The loss of a model that tells no token from another, in nats."""
    return math.log(model.net.config.vocab_size)
