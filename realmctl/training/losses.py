"""The seam between pre-training and what its retriever learns: scores and likelihoods in, a loss out. REALM's is `Marginal`.

Another loss is a class in a package of its own, by its entry point or room (`realmctl.retriever_losses`), and `pretrain --retriever-loss NAME`.
Legend: B queries, N candidates (null first), M masks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from realmctl.models.marginal import sequence_marginal, token_marginal
from realmctl.training.names import RETRIEVER_LOSSES
from realmctl.training.settings.pretrain import PretrainSettings


class RetrieverLoss(ABC):
    """What pre-training minimises. Its gradient trains the retriever, and a reader that learns: `Marginal` trains both.

    The metrics `retrieval_utility` and `null_share` do not depend on it. They take p(z|x) as the softmax of `log_terms`, whatever the loss.
    """

    def __init__(self, settings: PretrainSettings) -> None:
        self.settings = settings

    @abstractmethod
    def __call__(
        self, score_BN: Tensor, log_prob_BNM: Tensor, hidden_BM: Tensor, present_BN: Tensor, normaliser: float
    ) -> Tensor:
        """Return the loss of a micro-batch, a scalar.

        Args:
            score_BN: f(x, z), with gradients. log_prob_BNM: log p(y_m|z,x), with gradients if the reader learns.
            hidden_BM: bool, False at unused slots. present_BN: bool, False where a query has fewer candidates.
            normaliser: What the sum over the micro-batch is divided by: hidden tokens of the batch where `settings.per_token`, else queries.
        """

    def chance(self, of_token: float) -> float:
        """Return the loss of a model that tells nothing apart, in nats; 0 where it is not known.

        of_token: The loss of guessing one hidden token (`PretrainReader.chance`).
        """
        return 0.0


class Marginal(RetrieverLoss):
    """-log p(y|x), of each hidden token (`--marginal token`, the official code) or of the whole span (`sequence`, the paper's equation 1)."""

    def __call__(
        self, score_BN: Tensor, log_prob_BNM: Tensor, hidden_BM: Tensor, present_BN: Tensor, normaliser: float
    ) -> Tensor:
        marginal = token_marginal if self.settings.per_token else sequence_marginal
        return marginal(score_BN, log_prob_BNM, hidden_BM, present_BN, normaliser)[0]

    def chance(self, of_token: float) -> float:
        """Return the loss of guessing. It is known for each token, and not for a whole span, which has any number of tokens."""
        return of_token if self.settings.per_token else 0.0


def retriever_loss(settings: PretrainSettings) -> RetrieverLoss:
    """Return the loss that the settings name. Raises ConfigError and ResourceError as `Registry.load`."""
    return RETRIEVER_LOSSES.load(settings.retriever_loss, RetrieverLoss)(settings)
