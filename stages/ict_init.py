"""`realmctl ict-init`: train a retriever on the inverse cloze task, as a warm start."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.training.settings import IctSettings, TrainingStage


class IctInit(IctSettings, TrainingStage):
    """Train a retriever on the inverse cloze task: find the block that a sentence was taken from.

    Under torchrun each process takes a part of the batch. The negatives are the blocks of the whole batch.
    """

    makes = "retriever"
    headline = ("loss", "accuracy", "seconds_per_step")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.objectives.ict import train_ict

        return train_ict(self, out)
