"""Settings of `rerank-finetune`."""

from __future__ import annotations

from pathlib import Path

from realmctl.pipeline import help_texts, setting, source
from realmctl.training.settings.base import LARGEST_BATCH, Optimizer, TrainSettings, rate


class RerankTrainingSettings(TrainSettings):
    """A cross-encoder, from an encoder or from another cross-encoder, and questions with labelled passages."""

    start: str = source(
        "What to start from: folder or hub id of an encoder (BERT, a sentence encoder) or of a cross-encoder, or an artifact of one.",
        hub=True,
    )
    passages: Path = source(
        "Questions with labelled passages, in the formats of dpr-finetune, such as what mine-negatives made."
    )
    qrels: Path | None = source("Relevance judgements of the queries. Those of 0 are hard negatives.", default=None)
    corpus: tuple[Path, ...] = source("Corpus with the passages that are named by id alone.", default=())
    hard_negatives: int = setting(
        "Negatives of a question at each step, drawn from those of the file.", default=4, at_least=1, at_most=64
    )
    max_length: int = setting(
        "Longest input in wordpieces, question and passage together.", default=256, at_least=8, at_most=8192
    )
    steps: int = setting(help_texts.STEPS, default=2000, at_least=1)
    batch_size: int = setting("Questions per step.", default=16, at_least=1, at_most=LARGEST_BATCH)
    lr: float = rate(2e-5)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)
