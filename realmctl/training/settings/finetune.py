"""Fine-tuning on questions with answers: `finetune`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from realmctl.artifacts import Artifact
from realmctl.deviations import FinetuneDeviation, explained
from realmctl.errors import ConfigError
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.retrieval.names import retrieval_names
from realmctl.training.settings.base import LARGEST_BATCH, TrainSettings, rate


def _needs_no_model(given: Mapping[str, object]) -> bool:
    """Whether the specified inputs are enough without a model."""
    dense = given.get("retrieval", "dense") == "dense"
    return (
        bool(given.get("retriever") and given.get("index"))
        if dense
        else bool(given.get("encoder") or given.get("bert"))
    )


class QuestionTrainingSettings(TrainSettings):
    """A training on a file of questions."""

    questions: Path = source(help_texts.QUESTIONS)
    epochs: float = setting(
        "Number of passes over the questions.", default=2.0, above=0, at_most=1e6, used_without="steps"
    )
    steps: int = setting(
        "Number of training steps; 0 means as many as --epochs gives.", default=0, at_least=0, advanced=True
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None, advanced=True)
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None, advanced=True)
    micro_batch: int = runtime("Examples computed at once; 0 means the whole batch.", default=0, at_least=0)

    def with_steps(self, questions: int, per_step: int) -> Self:
        """Return the same settings with the steps that `epochs` passes over so many questions take, `per_step` of them a step."""
        steps = self.steps or max(1, round(self.epochs * questions / per_step))
        return dataclasses.replace(self, steps=steps, epochs=type(self).epochs)


class FinetuneSettings(QuestionTrainingSettings):
    """Fine-tuning on questions: what it starts from, and how it learns."""

    model: Artifact | None = reads(
        "model",
        "qa-model",
        help="Pre-trained model to start from, or a qa-model to train further.",
        replaced_by=_needs_no_model,
        default=None,
    )
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads(
        "retriever", help="Retriever to use instead of the model's.", explicit_only=True, default=None
    )
    index: Artifact | None = reads(
        "index",
        help="Index to use instead of the model's.",
        instead_of="model",
        replaced_by=lambda given: given.get("retrieval") != "dense",
        default=None,
    )
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder that the reader starts from, instead of the model's reader.",
        explicit_only=True,
        default=None,
        advanced=True,
    )
    bert: str | None = source(
        "BERT that the reader starts from: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
        used_without="encoder",
        advanced=True,
    )
    dev: Path | None = source(
        "File of development questions. The weights with the best span exact match on them are kept, instead of the last.",
        default=None,
    )
    spans: Artifact | None = reads(
        "spans",
        help="Tagged sentences that cloze questions are made from, to train on them too.",
        explicit_only=True,
        default=None,
        advanced=True,
    )
    retrieval: str = setting(
        "Retriever that finds the blocks. dense: retriever and index. bm25: BM25 over title and text. none: no blocks (closed"
        " book). Other names come from plug-ins.",
        default="dense",
        choices=retrieval_names,
    )
    freeze_retriever: bool = setting(
        "Train only the reader; the retriever does not change.", default=False, advanced=True
    )
    cloze_share: float | None = setting(
        "share of a step's questions that are cloze questions, which are further examples for a reader"
        " with few questions. Default: 0.5.",
        default=None,
        above=0,
        below=1,
        used_with="spans",
        advanced=True,
    )
    dev_every: int = setting(
        "Number of steps between evaluations.", default=500, at_least=1, used_with="dev", advanced=True
    )
    batch_size: int = setting(
        "Questions per step; the official code has 1.", default=16, at_least=1, at_most=LARGEST_BATCH
    )
    lr: float = rate(1e-5)
    retriever_lr: float | None = rate(
        None, "Peak learning rate of the retriever. Default: --lr; for BM25's factor a multiple of it.", advanced=True
    )
    layer_decay: float = setting(help_texts.READER_LAYER_DECAY, default=1.0, above=0, at_most=1, advanced=True)
    retriever_beam: int = setting(
        "Blocks retrieved per question; the retriever's loss covers them.", default=5000, at_least=1, advanced=True
    )
    reader_beam: int = setting("Blocks read per question, the best of those retrieved.", default=5, at_least=1)
    reader_length: int = setting("Longest input of the reader, in wordpieces.", default=320, at_least=8, advanced=True)
    span_width: int = setting("Longest answer, in wordpieces.", default=10, at_least=1, advanced=True)
    objective: Literal["orqa", "paper"] = setting(
        "Objective. orqa: one softmax over the spans of all blocks read, plus the retriever's loss. paper: the sum over the blocks read of p(z|x) p(y|z,x).",
        default="orqa",
        advanced=True,
    )
    official: tuple[FinetuneDeviation, ...] = setting(explained(FinetuneDeviation), default=(), advanced=True)
    index_shards: bool = runtime(help_texts.INDEX_SHARDS, default=False, advanced=True)

    def one_step(self) -> Self:
        """Return the same settings with one step. Nothing is answered but its questions."""
        alone = dataclasses.replace(self, dev=None, dev_every=type(self).dev_every, epochs=type(self).epochs)
        return super(FinetuneSettings, alone).one_step()

    @property
    def start(self) -> Artifact | None:
        """The encoder that the reader starts from: `encoder`, or else the model's reader; None with `bert`."""
        if self.encoder or self.bert or self.model is None:
            return self.encoder
        if "reader" not in self.model.manifest.parts:
            raise ConfigError(
                f"{self.model} was pre-trained with --reader-lm and holds no encoder. Name one with --encoder or --bert."
            )
        return self.model.part("reader")

    @property
    def share_of_cloze(self) -> float:
        return 0.5 if self.cloze_share is None else self.cloze_share

    @property
    def cloze_per_step(self) -> int:
        """Questions of each step that are cloze questions."""
        return round(self.share_of_cloze * self.batch_size) if self.spans is not None else 0
