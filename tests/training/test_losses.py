"""REALM's loss as pre-training calls it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from realmctl.training.losses import Marginal, RetrieverLoss

SCORE = torch.tensor([[1.0, 0.0, -1.0], [0.5, 2.0, 9.0]])
"""Of two queries and three candidates. The last one of the second query is not there."""
LOG_PROB = torch.tensor([[[-1.0, -2.0], [-0.5, -3.0], [-2.0, -0.1]], [[-0.2, -9.0], [-1.5, -9.0], [-9.0, -9.0]]])
HIDDEN = torch.tensor([[True, True], [True, False]])
PRESENT = torch.tensor([[True, True, True], [True, True, False]])


@pytest.mark.parametrize("per_token", [True, False])
def test_the_loss_is_the_marginal_likelihood_of_each_token_or_of_the_span(per_token: bool) -> None:
    wanted = 0.0
    for query in range(2):
        there = [z for z in range(3) if PRESENT[query, z]]
        prior = dict(zip(there, SCORE[query, there].softmax(0).tolist(), strict=True))
        masks = [mask for mask in range(2) if HIDDEN[query, mask]]
        for part in [[mask] for mask in masks] if per_token else [masks]:
            wanted -= math.log(
                sum(prior[z] * math.exp(sum(LOG_PROB[query, z, mask].item() for mask in part)) for z in there)
            )
    loss = Marginal(SimpleNamespace(per_token=per_token))
    assert loss(SCORE, LOG_PROB, HIDDEN, PRESENT, 4.0).item() == pytest.approx(wanted / 4, rel=1e-5)
    assert loss.chance(7.0) == (7.0 if per_token else 0.0)


def test_a_loss_that_computes_nothing_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        RetrieverLoss(SimpleNamespace(per_token=True))
