"""`realmctl dpr-finetune`: fine-tune a retriever on questions with labelled passages, as DPR does."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError
from realmctl.lab.dpr.settings import DprSettings
from realmctl.training.settings.base import TrainingStage


class DprFinetune(DprSettings, TrainingStage):
    """Fine-tune a retriever on questions with labelled passages: training files of DPR, Tevatron, FlagEmbedding and sentence-transformers, or judged queries.

    Each question has to find its positive passage among all passages of the batch. The retriever may come from `ict-init`,
    with --steps 0 for a BERT as it is, or from `import`. Under torchrun each process takes a part of the batch. The
    defaults are those of DPR.
    """

    makes = "retriever"
    version = 3  # 2: reworded titles must gain too. 3: another place of the block to find is no negative
    headline = ("loss", "accuracy", "seconds_per_step")

    def check(self) -> None:
        if self.retriever is None:
            raise ConfigError("dpr-finetune needs --retriever, for instance --retriever artifacts/retriever/v1.")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.dpr.objective import train_dpr

        return train_dpr(self, out)
