"""The loss `best-block` of `pretrain --retriever-loss`: the likeliest candidate alone explains what is hidden."""

from __future__ import annotations

from torch import Tensor

from realmctl.models.marginal import log_terms
from realmctl.training.losses import RetrieverLoss


class BestBlock(RetrieverLoss):
    """-max over z of log p(z|x) p(y|z,x), where REALM has the sum over z (equation 1).

    Legend: B queries, N candidates, M masks.
    """

    def __call__(
        self, score_BN: Tensor, log_prob_BNM: Tensor, hidden_BM: Tensor, present_BN: Tensor, normaliser: float
    ) -> Tensor:
        """Return the sum over the queries, or their hidden tokens, divided by `normaliser`."""
        prior_BN, likelihood_BNM = log_terms(score_BN, log_prob_BNM, hidden_BM, present_BN)
        if self.settings.per_token:
            best_BM = (prior_BN[:, :, None] + likelihood_BNM).amax(1)
            return -best_BM.masked_fill(~hidden_BM, 0.0).sum() / normaliser
        return -(prior_BN + likelihood_BNM.sum(2)).amax(1).sum() / normaliser
