"""`realmctl mlm-init`: train an encoder by masked language modelling, as a warm start."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.pipeline import extended
from realmctl.training.settings.base import TrainingStage
from realmctl.training.settings.encoder import MlmSettings


@extended("mlm-init")
class MlmInit(MlmSettings, TrainingStage):
    """Train an encoder and its masked-language-model head on blocks."""

    makes = "encoder"
    headline = ("loss", "accuracy", "seconds_per_step")
    version = 2  # 2: a random wordpiece is never a special token

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.mlm import train_mlm

        return train_mlm(self, out)
