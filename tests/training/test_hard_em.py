"""Hard EM: the likeliest mention by brute force, its gradient, the coin of each step, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from realmctl.errors import ConfigError
from realmctl.models.span_head import LOWEST, hard_em_loss, reader_loss, retrieval_loss
from tests.fixtures.chain import baseline, finetune, metrics_of
from tests.fixtures.finetuning import QUESTIONS, objective_of


def brute_force(score_QKS, correct_QKS):
    """min over the mentions of -log P, one mention at a time, in double precision."""
    losses = []
    for score_C, correct_C in zip(score_QKS.double().flatten(1), correct_QKS.flatten(1), strict=True):
        probability_C = score_C.exp() / score_C.exp().sum()
        mentions = [
            -probability.log() for probability, correct in zip(probability_C, correct_C, strict=True) if correct
        ]
        losses.append(min(mentions) if mentions else torch.zeros((), dtype=torch.double))
    return torch.stack(losses)


@given(st.integers(0, 10_000))
def test_the_loss_is_that_of_the_likeliest_mention(seed):
    generator = torch.Generator().manual_seed(seed)
    score = torch.randn(3, 2, 5, generator=generator) * 4
    correct = torch.rand(3, 2, 5, generator=generator) < 0.3
    found = hard_em_loss(score, correct)
    torch.testing.assert_close(found, brute_force(score, correct).float(), atol=1e-5, rtol=1e-5)
    assert (found >= reader_loss(score, correct) - 1e-5).all()


def test_the_gradient_is_that_of_the_loss():
    torch.manual_seed(0)
    score = torch.randn(3, 2, 4, dtype=torch.double, requires_grad=True)
    correct = torch.rand(3, 2, 4) < 0.5
    hard_em_loss(score, correct).sum().backward()
    step = 1e-5
    for place in np.ndindex(*score.shape):
        moved = [score.detach().clone(), score.detach().clone()]
        moved[0][place] += step
        moved[1][place] -= step
        more, less = (brute_force(each, correct).sum() for each in moved)
        assert score.grad[place].item() == pytest.approx(((more - less) / (2 * step)).item(), abs=1e-5)


def test_a_mention_whose_loss_is_exactly_zero_is_the_likeliest():
    """The public code takes a loss of 0 for padding, and would choose the other mention."""
    score = torch.full((1, 2, 2), LOWEST)
    score[0, 1, 0], score[0, 0, 1] = 5.0, -200.0
    correct = torch.tensor([[[False, True], [True, False]]])
    assert hard_em_loss(score, correct).tolist() == [0.0]
    none = hard_em_loss(score.requires_grad_(), torch.zeros_like(correct))
    none.sum().backward()
    assert none.tolist() == [0.0] and not score.grad.any()


def test_the_coin_falls_as_often_as_the_schedule_says(chain):
    objective = objective_of(chain, QUESTIONS)
    assert not any(objective.is_hard(step) for step in range(1000))
    objective.settings = replace(objective.settings, objective="hard-em", hard_em_tau=1000)
    hard = np.array([objective.is_hard(step) for step in range(8000)])
    expected = np.minimum(np.arange(8000) / 1000, 0.8)
    for start in range(0, 8000, 1000):
        window = slice(start, start + 1000)
        assert hard[window].mean() == pytest.approx(expected[window].mean(), abs=0.05)
    other = objective_of(chain, QUESTIONS)
    other.settings = replace(objective.settings, seed=1)
    assert [other.is_hard(step) for step in range(1000)] != hard[:1000].tolist()


def test_the_first_step_is_step_0(chain):
    """With tau 2 the probabilities of the first steps are 0, 1/2, .8 and .8."""
    objective, hard = objective_of(chain, QUESTIONS), []
    for seed in range(400):
        objective.settings = replace(objective.settings, objective="hard-em", hard_em_tau=2, seed=seed)
        hard.append([objective.is_hard(step) for step in range(4)])
    shares = np.mean(hard, axis=0)
    assert shares[0] == 0 and shares.tolist() == pytest.approx([0, 0.5, 0.8, 0.8], abs=0.1)


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("micro_batch", [0, 1])
def test_the_objective_takes_the_retrievers_loss_and_the_likeliest_mention(chain, freeze, micro_batch):
    objective = objective_of(chain, QUESTIONS, micro_batch=micro_batch, freeze=freeze)
    objective.settings = replace(objective.settings, objective="hard-em", hard_em_tau=1)
    hard = next(step for step in range(1, 50) if objective.is_hard(step))
    soft = next(step for step in range(50) if not objective.is_hard(step))
    for step in (hard, soft):
        parts = objective.draw(step)
        assert {part.hard for part in parts} == {step == hard}
        expected = torch.zeros(())
        for part in parts:
            span_QRS, correct_QRS = objective._spans(part, torch.device("cpu"))
            score_QK = objective.searcher.scores(part.questions, part.rows_QK)
            total_QRS = span_QRS + score_QK[:, : span_QRS.shape[1], None]
            loss_Q = brute_force(total_QRS, correct_QRS) if step == hard else reader_loss(total_QRS, correct_QRS)
            expected = expected + loss_Q.sum() + (0 if freeze else retrieval_loss(score_QK, part.correct_QK).sum())
        losses = [objective.loss(part) for part in parts]
        total = sum(loss for loss, _ in losses if loss is not None)
        assert total.item() == pytest.approx(expected.item() / 3, rel=1e-5)
        assert sum(sums["hard_em"][0] for _, sums in losses) == (3 if step == hard else 0)


def test_the_stage_trains_with_it_over_bm25_and_over_a_retriever(chain, tmp_path):
    for number, stage in enumerate(
        (baseline(chain, "bm25", objective="hard-em", hard_em_tau=2), finetune(chain, objective="hard-em"))
    ):
        made = stage.make(tmp_path / f"qa-{number}")
        assert "hard_em" in metrics_of(made)[0]
        assert '"objective": "hard-em"' in made.file("qa-model.json").read_text()
    assert "hard_em" not in metrics_of(finetune(chain).make(tmp_path / "plain"))[0]


@pytest.mark.parametrize("values", [{"hard_em_tau": 0, "objective": "hard-em"}, {"hard_em_tau": 5}])
def test_a_tau_that_cannot_work_is_refused(chain, values):
    with pytest.raises(ConfigError, match="--hard-em-tau"):
        finetune(chain, **values).check()
