"""`realmctl dpr-finetune`: fine-tune a retriever on questions with labelled passages, as DPR does."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError
from realmctl.lab.dpr.settings import DprSettings
from realmctl.training.settings.base import TrainingStage


class DprFinetune(DprSettings, TrainingStage):
    """Fine-tune a retriever on questions with labelled passages: training files of DPR, Tevatron, FlagEmbedding and sentence-transformers, or judged queries.

    Each question has to find its positive passage among all passages of the batch; none of its other known positives is a negative. With --loss it
    learns a teacher's scores of its own passages instead. The retriever may come from `ict-init`,
    with --steps 0 for a BERT as it is, or from `import`. Under torchrun each process takes a part of the batch. The
    defaults are those of DPR.
    """

    makes = "retriever"
    version = 4  # 2: reworded titles must gain too. 3: another place of the block to find is no negative. 4: nor is another known positive
    headline = ("loss", "accuracy", "seconds_per_step")

    def check(self) -> None:
        if self.retriever is None:
            raise ConfigError("dpr-finetune needs --retriever, for instance --retriever artifacts/retriever/v1.")
        if self.loss != "contrast" and (not self.hard_negatives or self.distill_start):
            flag = "--distill-start" if self.distill_start else "--hard-negatives 0"
            raise ConfigError(
                f"--loss {self.loss} compares a question's own passages, and {flag} says nothing there. Leave it out."
            )

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.dpr.objective import train_dpr

        return train_dpr(self, out)
