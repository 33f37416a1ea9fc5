"""The reader teaches the retriever which candidates help: perplexity distillation (Atlas) and REPLUG.

Legend: B queries, N candidates (null first), M masks.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realmctl.lab.distillation.options import DistillationOptions
from realmctl.models.marginal import log_terms, normalised_loss, sequence_marginal
from realmctl.training.losses import RetrieverLoss
from realmctl.training.settings.pretrain import PretrainSettings


class Distillation(RetrieverLoss):
    """KL(Q || p(z|x)), where Q is the reader's own choice (Atlas). A reader that learns has -log p(y|x) beside it."""

    from_prior = False

    def __init__(self, settings: PretrainSettings) -> None:
        super().__init__(settings)
        assert isinstance(settings, DistillationOptions)  # its options name the loss
        self.temperature = settings.reader_temperature

    def __call__(
        self, score_BN: Tensor, log_prob_BNM: Tensor, hidden_BM: Tensor, present_BN: Tensor, normaliser: float
    ) -> Tensor:
        others = (hidden_BM, present_BN, normaliser)
        scaled_BNM = scaled(log_prob_BNM, hidden_BM, self.temperature)
        loss = distillation(score_BN, scaled_BNM, *others, from_prior=self.from_prior)
        if not self.settings.freezes_reader:
            loss = loss + sequence_marginal(score_BN.detach(), log_prob_BNM, *others)[0]
        return loss


class Replug(Distillation):
    """KL(p(z|x) || Q), the divergence in the other direction (REPLUG)."""

    from_prior = True


def scaled(mlm_log_prob_BNM: Tensor, mask_BM: Tensor, temperature: float) -> Tensor:
    """Return log-likelihoods divided by a temperature and by the number of masked pieces of their query, as Atlas does.

    So their sum over the pieces is the mean log-likelihood: minus the logarithm of the perplexity.
    """
    count_B11 = mask_BM.sum(1).clamp(min=1)[:, None, None]
    return mlm_log_prob_BNM.float() / (temperature * count_B11)


def distillation(
    score_BN: Tensor,
    log_prob_BNM: Tensor,
    mask_BM: Tensor,
    candidate_mask_BN: Tensor | None = None,
    normaliser: Tensor | float | None = None,
    *,
    from_prior: bool = False,
) -> Tensor:
    """Return sum of KL(Q || p(z|x)) / normaliser: the reader teaches the retriever which candidates help.

    Q(z|x,y) is the softmax over the candidates of the sum of their log-likelihoods, which get no gradient. The gradient with respect to
    the scores is (p(z|x) - Q(z|x,y)) / normaliser. (Perplexity distillation of Atlas, Izacard et al. 2022, section 2.2, with `scaled`
    log-likelihoods.) With `from_prior` it is KL(p(z|x) || Q), as in REPLUG (Shi et al. 2023, section 4), and the gradient
    p(z|x) (log p(z|x) - log Q(z|x,y) - KL) / normaliser. Other arguments as in `sequence_marginal`.
    """
    prior_BN, likelihood_BNM = log_terms(score_BN, log_prob_BNM.detach(), mask_BM, candidate_mask_BN)
    teacher_BN = likelihood_BNM.sum(2)
    if candidate_mask_BN is not None:
        teacher_BN = teacher_BN.masked_fill(~candidate_mask_BN, torch.finfo(torch.float32).min)
    asked_B = mask_BM.any(1)
    log_q_BN = teacher_BN.log_softmax(1)
    pair = (log_q_BN, prior_BN) if from_prior else (prior_BN, log_q_BN)
    each_BN = F.kl_div(*pair, reduction="none", log_target=True)
    return -normalised_loss(each_BN.sum(1).masked_fill(~asked_B, 0.0), asked_B, normaliser)
