"""`realmctl ict-init`: train a retriever on the inverse cloze task, as a warm start."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.training.settings.base import TrainingStage
from realmctl.training.settings.cloze import CLOZE_HEADLINE
from realmctl.training.settings.retriever import IctSettings


class IctInit(IctSettings, TrainingStage):
    """Train a retriever on the inverse cloze task: find the block that a sentence was taken from.

    Under torchrun each process takes a part of the batch. The negatives are the blocks of the whole batch.
    """

    makes = "retriever"
    version = 3  # 2: reworded titles must gain too. 3: another place of the block to find is no negative, and sentences that measure are left out
    headline = ("loss", "accuracy", *CLOZE_HEADLINE, "seconds_per_step")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.ict import train_ict

        return train_ict(self, out)
