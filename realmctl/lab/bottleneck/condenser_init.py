"""`realmctl condenser-init`: an encoder's warm start by Condenser or coCondenser."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError
from realmctl.lab.bottleneck.settings import CondenserSettings
from realmctl.training.settings.base import TrainingStage


class CondenserInit(CondenserSettings, TrainingStage):
    """Train an encoder whose [CLS] state summarises a passage: Condenser, or coCondenser with --contrastive.

    A short head predicts masked wordpieces from the [CLS] state of the last layer and the token states of an early layer.
    Later stages use the backbone without the head. The head is saved with the backbone, so that another condenser-init
    can continue from both. Under torchrun each process takes a part of the batch, and each span is compared with the
    spans of all processes.
    """

    makes = "encoder"
    version = 4  # 2: a word longer than the budget is not masked, and neither is [UNK]. 3: reworded titles must gain too. 4: another pair of the document is no negative
    headline = ("loss", "accuracy", "seconds_per_step")

    def check(self) -> None:
        if self.contrastive and self.batch_size < 2:
            raise ConfigError(f"--batch-size {self.batch_size}: --contrastive needs at least 2 documents in a batch.")
        if self.retriever is not None and not self.contrastive:
            raise ConfigError(
                "--retriever needs --contrastive: without a contrast nothing trains what a retriever computes."
            )
        self.refuse_with_retriever("encoder", "bert")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.bottleneck.condenser_objective import train_condenser

        return train_condenser(self, out)
