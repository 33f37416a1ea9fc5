"""The inverse cloze task beside REALM: `pretrain --objective beside-ict`.

Why it is here: more of the task alone loses what the encoder knew of questions, and REALM alone does not teach a sentence to find its block. Trained
together, either may keep what the other one forgets (docs/results/wikipedia/report.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from realmctl.models.retriever import Retriever
from realmctl.training.ict import InverseClozeObjective
from realmctl.training.in_batch import PairChunk
from realmctl.training.objective import Sums
from realmctl.training.realm import Micro, RealmObjective
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.settings.pretrain import PretrainSettings
from realmctl.training.settings.retriever import IctSettings

OFFERS = {"realmctl.objectives": {"beside-ict": "realmctl.lab.beside_ict:BesideIct"}}
PAIRS = 2
"""Pairs of a sentence and a block for each sentence of REALM's."""


class BesideIct(RealmObjective):
    """-log p(y|x) of REALM's batch (equation 1), plus the loss of an in-batch softmax over `PAIRS` times as many blocks (ORQA, section 4).

    Both have the weight 1, and the same retriever. The sentences of cloze recall are no pairs.
    """

    def __init__(self, settings: PretrainSettings, retriever: Retriever, in_use: IndexInUse) -> None:
        super().__init__(settings, retriever, in_use)
        pairs = IctSettings(
            blocks=settings.blocks, batch_size=PAIRS * settings.batch_size, micro_batch=PAIRS * settings.candidates * settings.at_once,
            seed=settings.seed, cloze_recall=settings.cloze_recall,
        )  # fmt: skip
        self.ict = InverseClozeObjective(retriever, self.corpus, self.collator, pairs)

    @property
    def chance(self) -> float:
        """Both losses of a model that tells nothing apart, in nats; 0 where REALM's is not known."""
        return super().chance and super().chance + self.ict.chance

    def draw(self, step: int) -> Sequence[Micro | PairChunk]:  # type: ignore[override]
        """The micro-batches of both tasks."""
        return [*super().draw(step), *self.ict.draw(step)]

    def loss(self, part: Micro | PairChunk) -> tuple[Tensor, Sums]:
        """The loss of a micro-batch of either task. `ict_accuracy` is the share of the sentences that find their block."""
        if isinstance(part, Micro):
            return super().loss(part)
        loss, sums = self.ict.loss(part)
        return loss, {"ict_accuracy": sums["accuracy"]}
