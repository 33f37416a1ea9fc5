"""`realmctl pretrain`: REALM pre-training, with an index that is refreshed while training runs."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer, require_descent, require_same_vocabulary, require_titles
from realmctl.errors import ConfigError
from realmctl.pipeline import extended
from realmctl.training.settings.base import TrainingStage
from realmctl.training.settings.cloze import CLOZE_HEADLINE
from realmctl.training.settings.pretrain import PretrainSettings


@extended("pretrain")
class Pretrain(PretrainSettings, TrainingStage):
    """Pre-train retriever and reader together: fill hidden salient spans with the help of retrieved blocks.

    A killed run continues from its last checkpoint with the same command.
    """

    makes = "model"
    version = 3  # 2: reworded titles must gain too. 3: a query without any candidate is left out
    headline = (
        "loss",
        "retrieval_utility",
        "null_share",
        "recall@*",
        *CLOZE_HEADLINE,
        "refreshes",
        "alarms",
        "seconds_per_step",
    )

    def check(self) -> None:
        super().check()
        if "recall_lost" in self.stop_on and self.recall_questions is None:
            raise ConfigError("--stop-on recall_lost needs --recall-questions FILE, whose recall it watches.")
        require_same_vocabulary(self.blocks, self.retriever, *([self.spans] if self.spans else []))
        require_titles(self.blocks)
        require_descent(self.index, self.blocks, self.retriever)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.pretrain import pretrain

        return pretrain(self, out)
