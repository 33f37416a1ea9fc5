"""The stage `pretrain-spread`: `pretrain` with another objective."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from stages.pretrain import Pretrain


class PretrainSpread(Pretrain):
    """Pre-train retriever and reader together, and reward a retriever that does not bet on one block."""

    makes = "model"

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.pretrain import pretrain
        from realmctl_example.spread import Spread

        return pretrain(self, out, objective=Spread)
