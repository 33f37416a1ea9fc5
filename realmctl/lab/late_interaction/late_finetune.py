"""`realmctl late-finetune`: train a late-interaction encoder on questions with labelled passages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Writer
from realmctl.pipeline import help_texts, setting, source
from realmctl.training.settings.base import LARGEST_BATCH, Optimizer, TrainingStage, TrainSettings, rate


class LateTrainingSettings(TrainSettings):
    """A late-interaction encoder, and questions with labelled passages."""

    start: str = source(
        "What to start from: folder or hub id of a multi-vector encoder of sentence-transformers 6, or an artifact of late-finetune.",
        hub=True,
    )
    passages: Path = source(
        "Questions with labelled passages, in the formats of dpr-finetune, such as what mine-negatives made."
    )
    qrels: Path | None = source("Relevance judgements of the queries. Those of 0 are hard negatives.", default=None)
    corpus: tuple[Path, ...] = source("Corpus with the passages that are named by id alone.", default=())
    hard_negatives: int = setting("Hard negatives of a question at each step.", default=1, at_least=0, at_most=32)
    steps: int = setting(help_texts.STEPS, default=2000, at_least=1)
    batch_size: int = setting(
        "Questions per step; the passages of the others are negatives too.",
        default=32,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    lr: float = rate(1e-5)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)


class LateFinetune(LateTrainingSettings, TrainingStage):
    """Train a late-interaction encoder, such as a ColBERT, on questions with labelled passages, through MaxSim.

    Each question has to find its positive passage among all passages of the batch; none of its other known positives is a negative. The result is a
    multi-vector folder of sentence-transformers 6, which late-embed and sentence-transformers read.
    """

    makes = "late-encoder"
    headline = ("loss", "accuracy", "seconds_per_step")
    parallel = False

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.late_interaction.training import train_late

        return train_late(self, out)
