"""Distillation is the written-out divergence, with its closed gradient."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from realmctl.lab.distillation.losses import distillation, scaled

shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**16))


def example(shape: tuple[int, int, int, int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    queries, candidates, masks, seed = shape
    generator = torch.Generator().manual_seed(seed)
    score = torch.randn(queries, candidates, generator=generator, dtype=torch.float64).float() * 3
    log_prob = -torch.rand(queries, candidates, masks, generator=generator) * 5
    mask = torch.rand(queries, masks, generator=generator) < 0.7
    present = torch.rand(queries, candidates, generator=generator) < 0.7
    present[:, 0] = True
    return score, log_prob, mask, present


def priors(score: Tensor, present: Tensor, b: int) -> list[float]:
    weights = [math.exp(s) if p else 0.0 for s, p in zip(score[b].tolist(), present[b].tolist(), strict=True)]
    return [weight / sum(weights) for weight in weights]


@given(shapes)
@settings(max_examples=40, deadline=None)
def test_distillation_is_the_written_out_divergence_and_its_gradient_p_minus_q(
    shape: tuple[int, int, int, int],
) -> None:
    score, log_prob, mask, present = example(shape)
    score.requires_grad_()
    likelihood = scaled(log_prob, mask, temperature=0.5)
    loss = distillation(score, likelihood, mask, present)
    loss.backward()
    total, asked, expected = 0.0, int(mask.any(1).sum()), torch.zeros_like(score)
    for b in mask.any(1).nonzero()[:, 0].tolist():
        means = [
            sum(row[m] for m in mask[b].nonzero()[:, 0].tolist()) / int(mask[b].sum()) for row in log_prob[b].tolist()
        ]
        weights = [math.exp(mean / 0.5) if p else 0.0 for mean, p in zip(means, present[b].tolist(), strict=True)]
        teacher, prior = [weight / sum(weights) for weight in weights], priors(score, present, b)
        total += sum(q * math.log(q / p) for q, p in zip(teacher, prior, strict=True) if q)
        expected[b] = (torch.tensor(prior) - torch.tensor(teacher)) / max(1, asked)
    assert loss.item() == pytest.approx(total / max(1, asked), abs=1e-4)
    assert score.grad is not None
    assert_close(score.grad, expected, atol=1e-4, rtol=1e-4)


@given(shapes)
@settings(max_examples=20, deadline=None)
def test_the_divergence_from_the_prior_and_its_gradient(shape: tuple[int, int, int, int]) -> None:
    score, log_prob, mask, present = example(shape)
    score.requires_grad_()
    loss = distillation(score, log_prob, mask, present, from_prior=True)
    loss.backward()
    total, asked, expected = 0.0, int(mask.any(1).sum()), torch.zeros_like(score)
    for b in mask.any(1).nonzero()[:, 0].tolist():
        sums = [sum(row[m] for m in mask[b].nonzero()[:, 0].tolist()) for row in log_prob[b].tolist()]
        weights = [math.exp(each) if p else 0.0 for each, p in zip(sums, present[b].tolist(), strict=True)]
        prior = priors(score, present, b)
        gaps = [math.log(p * sum(weights) / w) if w else 0.0 for p, w in zip(prior, weights, strict=True)]
        divergence = sum(p * gap for p, gap in zip(prior, gaps, strict=True))
        total += divergence
        expected[b] = torch.tensor([p * (gap - divergence) for p, gap in zip(prior, gaps, strict=True)]) / asked
    assert loss.item() == pytest.approx(total / max(1, asked), abs=1e-4)
    assert score.grad is not None
    assert_close(score.grad, expected, atol=1e-4, rtol=1e-4)


def test_distillation_gives_the_reader_no_gradient() -> None:
    score, log_prob = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3, 1, requires_grad=True)
    distillation(score, log_prob, torch.ones(2, 1, dtype=torch.bool)).backward()
    assert log_prob.grad is None and score.grad is not None
