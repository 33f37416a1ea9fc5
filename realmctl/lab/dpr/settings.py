"""Settings of `dpr-finetune`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.pipeline import help_texts, reads, setting, source
from realmctl.training.settings.base import LARGEST_BATCH, Optimizer, rate
from realmctl.training.settings.retriever import ContrastSettings


class DprSettings(ContrastSettings):
    """Contrast on questions with labelled passages."""

    retriever: Artifact | None = reads("retriever", help="Retriever to fine-tune.", explicit_only=True, default=None)
    passages: Path = source(
        "Questions with labelled passages: what mine-negatives made; DPR's JSON; JSON lines or Parquet of Tevatron, FlagEmbedding or sentence-transformers; a BEIR folder; or queries with --qrels."
    )
    qrels: Path | None = source("Relevance judgements of the queries. Those of 0 are hard negatives.", default=None)
    corpus: tuple[Path, ...] = source("Corpus with the passages that are named by id alone.", default=())
    loss: Literal["contrast", "margin-mse", "kl"] = setting(
        "contrast: each question has to find its positive passage. margin-mse and kl learn from a teacher's scores, as mine-negatives --cross-encoder writes them: their margins (MarginMSE), or their softmax (Kullback-Leibler).",
        default="contrast",
    )
    teacher_temperature: float = setting(
        "margin-mse and kl: what the teacher's scores are divided by.",
        default=1.0,
        above=0,
        at_most=1e6,
        used_with="loss=margin-mse|loss=kl",
        advanced=True,
    )
    hard_negatives: int = setting("Hard negatives of a question at each step.", default=1, at_least=0, at_most=32)
    steps: int = setting(help_texts.STEPS, default=18_400, at_least=1)
    batch_size: int = setting(
        "Questions per step; the passages of the others are negatives too.",
        default=128,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    lr: float = rate(2e-5)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw")
