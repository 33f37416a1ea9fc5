"""The objective `spread` of `pretrain --objective`: REALM's, with a reward for a retriever that does not bet on one block."""

from __future__ import annotations

from torch import Tensor

from realmctl.models.marginal import log_terms
from realmctl.training.objective import Sums
from realmctl.training.realm import Micro, RealmObjective

WEIGHT = 0.01
"""How much a nat of entropy is worth beside a nat of likelihood."""


class Spread(RealmObjective):
    """-log p(y|x) - WEIGHT H(p(z|x)), both divided alike."""

    def loss(self, part: Micro) -> tuple[Tensor, Sums]:
        found = self.step(part)
        prior_BN, _ = log_terms(found.score_BN, found.log_prob_BNM, found.hidden_BM, found.present_BN)
        entropy = -(prior_BN.exp() * prior_BN).masked_fill(~found.present_BN, 0.0).sum()
        sums = self.utility_sums(self.beside_null(part, found))
        return found.loss - WEIGHT * entropy / part.normaliser, {**sums, "entropy": (entropy, len(prior_BN))}
