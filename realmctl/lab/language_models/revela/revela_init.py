"""`realmctl revela-init`: train a retriever by the in-batch attention of a language model."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer, require_same_vocabulary
from realmctl.lab.language_models.revela.settings import RevelaSettings
from realmctl.training.settings.base import TrainingStage


class RevelaInit(RevelaSettings, TrainingStage):
    """Train a retriever by what a language model wants to read: Revela.

    The language model predicts the next token of each block of a batch, and reads the other blocks of the batch too, each as much as the retriever
    finds it similar. So the loss of the language model trains both (Cai et al. 2025). The first half of a block is the query. Documents need two
    blocks or more.
    """

    makes = "retriever"
    headline = ("loss", "accuracy", "same_document", "seconds_per_step")
    parallel = False

    def check(self) -> None:
        super().check()
        require_same_vocabulary(self.blocks, self.retriever)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.language_models.revela.objective import train_revela

        return train_revela(self, out)
