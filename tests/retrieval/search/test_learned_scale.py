"""The learned scale against its closed form, and how fast it moves."""

from __future__ import annotations

import pytest
import torch

from realmctl.models.optimizer import BertAdamW, decay_groups
from realmctl.models.span_head import retrieval_loss
from realmctl.retrieval.search.bm25 import LearnedScale


@pytest.mark.parametrize("start", [0.2, 1.0, 3.0])
def test_the_gradient_is_the_difference_of_two_expectations(start):
    """d/dw of -log of the correct share of softmax(e^w s) is e^w (E[s] - E[s | correct])."""
    score_QK = torch.randn(4, 7, generator=torch.Generator().manual_seed(0)) * 3
    correct_QK = score_QK.argsort(1) < 2
    scale = LearnedScale(start)
    retrieval_loss(scale(score_QK), correct_QK).sum().backward()
    share_QK = (start * score_QK.double()).softmax(1)
    of_correct_QK = share_QK * correct_QK / (share_QK * correct_QK).sum(1, keepdim=True)
    expected = (start * score_QK * (share_QK - of_correct_QK)).sum()
    assert float(scale.log_scale.grad) == pytest.approx(float(expected), rel=1e-4)


def test_the_likeliest_scale_is_found_within_three_hundred_steps():
    """Whole and correct blocks drawn from softmax(2.5 s): the likelihood's maximum, by a fine grid, is what is learnt."""
    generator = torch.Generator().manual_seed(1)
    score_QK = torch.randn(400, 20, generator=generator) * 2
    drawn_Q = torch.multinomial((2.5 * score_QK).softmax(1), 1, generator=generator)
    correct_QK = torch.zeros_like(score_QK, dtype=torch.bool).scatter(1, drawn_Q, True)
    grid = [0.5 + 0.01 * number for number in range(500)]
    best = min(grid, key=lambda value: float(retrieval_loss(value * score_QK, correct_QK).mean()))
    scale = LearnedScale()
    optimizer = BertAdamW(
        decay_groups([scale], lr_multipliers={scale: scale.LR_MULTIPLIER}), betas=(0.9, 0.98), bias_correction=True
    )
    for step in range(300):
        optimizer.zero_grad()
        rows = torch.randint(400, (8,), generator=generator)
        retrieval_loss(scale(score_QK[rows]), correct_QK[rows]).mean().backward()
        optimizer.set_lr(3e-4 * (1 - step / 300))
        optimizer.step()
    assert scale.value == pytest.approx(best, rel=0.1)


def test_its_learning_rate_is_multiplied_and_the_rest_is_not():
    module = torch.nn.ModuleDict({"scale": LearnedScale(2.0), "linear": torch.nn.Linear(2, 2)})
    groups = decay_groups([module], lr_multipliers={module["scale"]: LearnedScale.LR_MULTIPLIER})
    assert [len(group["params"]) for group in groups] == [1, 1, 1] and groups[2]["weight_decay"] == 0.0
    assert all("lr_multiplier" not in group for group in decay_groups([module["linear"]]))
    optimizer = BertAdamW(groups, bias_correction=True)
    scale, bias = module["scale"].log_scale, module["linear"].bias
    before = float(scale.detach()), bias.detach().clone()
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, 0.01)
    optimizer.set_lr(1e-3)
    optimizer.step()
    assert before[0] - float(scale.detach()) == pytest.approx(0.1, rel=1e-3)
    assert torch.allclose(before[1] - bias, torch.tensor(1e-3), rtol=1e-3)
