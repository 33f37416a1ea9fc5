"""`realmctl rerank-finetune`: train a cross-encoder on questions with labelled passages."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.lab.cross_encoders.settings import RerankTrainingSettings
from realmctl.training.settings.base import TrainingStage


class RerankFinetune(RerankTrainingSettings, TrainingStage):
    """Train a cross-encoder, which reads a question and a passage together, on questions with labelled passages.

    Each question has to find its positive passage among its own hard negatives: a softmax over their scores (localised contrast, Gao et al. 2021).
    The result stands wherever a cross-encoder does: rank --rerank, mine-negatives --cross-encoder, and sentence-transformers, which loads its folder.
    """

    makes = "cross-encoder"
    headline = ("loss", "accuracy", "seconds_per_step")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.cross_encoders.objective import train_cross_encoder

        return train_cross_encoder(self, out)
