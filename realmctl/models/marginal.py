"""REALM's marginal likelihood, which couples retriever and reader, and the utility of retrieval.

p(y|x) = sum_n p(z_n|x) p(y|z_n,x) over the candidates (paper, equation 1). The paper takes the product
over masked pieces inside the sum (`sequence`); the official code takes the sum for each piece alone
(`token`; google-research/language, realm/model.py). Both are equal when one piece is masked.
Legend: B queries, N candidates (the null document first), M masks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


def token_marginal(
    score_BN: Tensor,
    mlm_log_prob_BNM: Tensor,
    mask_BM: Tensor,
    candidate_mask_BN: Tensor | None = None,
    normaliser: Tensor | float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the loss, -sum log p(y_m|x) / normaliser, and log p(y_m|x), [B, M], 0 at unused slots.

    score_BN: inner products. mlm_log_prob_BNM: log p(y_m|z_n,x). mask_BM: bool, True at real masked pieces.
    candidate_mask_BN: bool, False where a query has fewer candidates. normaliser: the number of masked
    pieces here by default. A caller with micro-batches or processes passes the number of the whole batch,
    and the losses and gradients of all of them add up to those of the batch.
    An empty batch gives a loss of 0 with zero gradients.
    """
    prior_BN, likelihood_BNM = log_terms(score_BN, mlm_log_prob_BNM, mask_BM, candidate_mask_BN)
    log_prob_BM = torch.logsumexp(prior_BN[:, :, None] + likelihood_BNM, 1).masked_fill(~mask_BM, 0.0)
    return normalised_loss(log_prob_BM, mask_BM, normaliser), log_prob_BM


def sequence_marginal(
    score_BN: Tensor,
    mlm_log_prob_BNM: Tensor,
    mask_BM: Tensor,
    candidate_mask_BN: Tensor | None = None,
    normaliser: Tensor | float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the loss, -sum log p(y|x) / normaliser, and log p(y|x), [B], 0 for a query without a mask.

    Arguments as in `token_marginal`. Here the masked pieces of a query share one candidate, and the default
    normaliser is the number of queries with a mask.
    """
    prior_BN, likelihood_BNM = log_terms(score_BN, mlm_log_prob_BNM, mask_BM, candidate_mask_BN)
    asked_B = mask_BM.any(1)
    log_prob_B = torch.logsumexp(prior_BN + likelihood_BNM.sum(2), 1).masked_fill(~asked_B, 0.0)
    return normalised_loss(log_prob_B, asked_B, normaliser), log_prob_B


class Utility(NamedTuple):
    """Retrieval utility in nats. All tensors are detached.

    token_gain: scalar, mean over masked pieces of log p(y_m|x) - log p(y_m|null,x) (official metric).
    document_BN: RU(z|x) = log p(y|z,x) - log p(y|null,x) of each candidate (paper, section 4.5).
    top_1_B: RU of the best-scored real candidate, 0 for a query without real candidates.
    null_share_B: p(null|x).
    """

    token_gain: Tensor
    document_BN: Tensor
    top_1_B: Tensor
    null_share_B: Tensor


@torch.no_grad()
def retrieval_utility(
    score_BN: Tensor, mlm_log_prob_BNM: Tensor, mask_BM: Tensor, candidate_mask_BN: Tensor | None = None
) -> Utility:
    """Compare each candidate, and the marginal, with the null document (candidate 0). Arguments as in `token_marginal`."""
    present_BN = torch.ones_like(score_BN).bool() if candidate_mask_BN is None else candidate_mask_BN
    prior_BN, likelihood_BNM = log_terms(score_BN, mlm_log_prob_BNM, mask_BM, present_BN)
    gain_BM = torch.logsumexp(prior_BN[:, :, None] + likelihood_BNM, 1) - likelihood_BNM[:, 0]
    document_BN = (likelihood_BNM - likelihood_BNM[:, :1]).sum(2).masked_fill(~present_BN, 0.0)
    real_prior_BN = prior_BN.masked_fill(~present_BN, -torch.inf)
    real_prior_BN[:, 0] = -torch.inf
    best_B1 = real_prior_BN.argmax(1, keepdim=True)
    return Utility(
        token_gain=gain_BM.masked_fill(~mask_BM, 0.0).sum() / mask_BM.sum().clamp(min=1),
        document_BN=document_BN,
        top_1_B=document_BN.gather(1, best_B1)[:, 0],
        null_share_B=prior_BN[:, 0].exp(),
    )


def log_terms(
    score_BN: Tensor, mlm_log_prob_BNM: Tensor, mask_BM: Tensor, candidate_mask_BN: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return log p(z|x) [B, N] and log p(y_m|z,x) [B, N, M], float32. Absent candidates and unused slots do not count."""
    score_BN, kept_BNM = score_BN.float(), mask_BM[:, None, :]
    if candidate_mask_BN is not None:
        score_BN = score_BN.masked_fill(~candidate_mask_BN, torch.finfo(torch.float32).min)
        kept_BNM = kept_BNM & candidate_mask_BN[:, :, None]
    return score_BN.log_softmax(1), mlm_log_prob_BNM.float().masked_fill(~kept_BNM, 0.0)


def normalised_loss(log_prob: Tensor, counted: Tensor, normaliser: Tensor | float | None) -> Tensor:
    """Return minus the sum of `log_prob` divided by `normaliser`, by default the number of True in `counted`, at least 1.

    `log_prob` must be 0 where `counted`, bool, is False.
    """
    if normaliser is None:
        normaliser = counted.sum().clamp(min=1)
    return -log_prob.sum() / normaliser
