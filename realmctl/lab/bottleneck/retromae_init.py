"""`realmctl retromae-init`: an encoder's warm start by RetroMAE or DupMAE."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.lab.bottleneck.settings import RetroMaeSettings
from realmctl.training.settings.base import TrainingStage


class RetromaeInit(RetroMaeSettings, TrainingStage):
    """Train an encoder whose [CLS] state is enough to rebuild a passage: RetroMAE, or DupMAE with --bag-of-words.

    The encoder reads the passage with some words masked. A decoder of one layer rebuilds every wordpiece from the vector of the
    passage and a random half of the others (Xiao et al. 2022). Later stages use the encoder without the decoder.
    """

    makes = "encoder"
    version = (
        3  # 2: a word longer than the budget is not masked, and neither is [UNK]. 3: reworded titles must gain too
    )
    headline = ("loss", "decoder_loss", "encoder_loss", "seconds_per_step")

    def check(self) -> None:
        self.refuse_with_retriever("encoder", "bert")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.bottleneck.retromae_objective import train_retromae

        return train_retromae(self, out)
