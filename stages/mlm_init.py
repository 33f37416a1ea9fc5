"""`realmctl mlm-init`: train an encoder by masked language modelling, as a warm start."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer, require_same_vocabulary
from realmctl.errors import ConfigError
from realmctl.training.names import RANDOM
from realmctl.training.settings.base import TrainingStage
from realmctl.training.settings.encoder import MlmSettings


class MlmInit(MlmSettings, TrainingStage):
    """Train an encoder and its masked-language-model head, on blocks or as copy pre-training.

    With --spans each tagged sentence is read together with the block that restates it, and salient spans are hidden.
    """

    makes = "encoder"
    headline = ("loss", "accuracy", "seconds_per_step")
    version = 2  # 2: a random wordpiece is never a special token

    def check(self) -> None:
        if self.steps == 0 and self.head_init == RANDOM:
            raise ConfigError("--steps 0 changes nothing. Add --head-init ridge, which fits a head, or take steps.")
        if self.practice == "curriculum" and self.spans is None:
            raise ConfigError("--practice curriculum needs --spans, the sentences to copy.")
        if self.spans:
            require_same_vocabulary(self.blocks, self.spans)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.mlm import train_mlm

        return train_mlm(self, out)
