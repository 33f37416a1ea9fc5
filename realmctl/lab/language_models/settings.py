"""Causal language models: `lm-init`, `lm-finetune`, and the datastore of kNN-LM."""

from __future__ import annotations

from realmctl.artifacts import Artifact
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.settings.base import LARGEST_BATCH, Optimizer, TrainSettings
from realmctl.training.settings.finetune import QuestionTrainingSettings


class LmInitSettings(TrainSettings):
    """Salient-span pre-training of a language model."""

    spans: Artifact = reads("spans", help="Tagged sentences to train on.")
    blocks: Artifact | None = reads(
        "blocks",
        help="Blocks for copy pre-training: each sentence stands behind a block that restates it. Default: sentences alone.",
        explicit_only=True,
        default=None,
    )
    lm: str = source("Language model to start from: a folder or a hub id, of T5's kind or of GPT-2's.", hub=True)
    batch_size: int = setting("Sentences per step.", default=32, at_least=1, at_most=LARGEST_BATCH)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)
    length: int = setting("Longest sentence, in tokens of the language model.", default=128, at_least=4, at_most=4096)
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. Default: the model's own.", default=None, at_least=0, below=1, advanced=True
    )
    micro_batch: int = runtime("Examples computed at once; 0 means the whole batch.", default=0, at_least=0)


class LmFinetuneSettings(QuestionTrainingSettings):
    """Closed-book fine-tuning of a language model."""

    lm: str | None = source("Language model to start from: a folder or a hub id.", default=None, hub=True)
    language_model: Artifact | None = reads(
        "language-model", help="Language model that lm-init made, instead of --lm.", explicit_only=True, default=None
    )
    prompt: str | None = setting(
        "Text that the model reads, with {question} at the question's place. Default: the question alone for T5's kind, and"
        " 'Question: {question}', a line break and 'Answer:' for GPT-2's.",
        default=None,
        advanced=True,
    )
    epochs: float = setting(
        "Number of passes over the questions.", default=20.0, above=0, at_most=1e6, used_without="steps"
    )
    batch_size: int = setting("Questions per step.", default=32, at_least=1, at_most=LARGEST_BATCH)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. Default: the model's own.", default=None, at_least=0, below=1, advanced=True
    )
    question_length: int = setting(
        "Longest prompt with its question, in tokens of the language model.",
        default=128,
        at_least=4,
        at_most=4096,
        advanced=True,
    )
    answer_length: int = setting(
        "Longest answer, in tokens of the language model.", default=32, at_least=1, at_most=512, advanced=True
    )
    beams: int = setting(
        "Width of the beam that writes answers. 1: greedy decoding.", default=1, at_least=1, at_most=64, advanced=True
    )
