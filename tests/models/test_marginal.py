"""The objectives against sums written out by hand (the definitions, not another implementation)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from realmctl.models.marginal import retrieval_utility, sequence_marginal, token_marginal

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
def test_token_marginal_is_the_written_out_sum(shape: tuple[int, int, int, int]) -> None:
    score, log_prob, mask, present = example(shape)
    loss, per_token = token_marginal(score, log_prob, mask, present)
    total = 0.0
    for b, m in mask.nonzero().tolist():
        terms = zip(priors(score, present, b), log_prob[b, :, m].tolist(), strict=True)
        p = sum(pz * math.exp(lp) for pz, lp in terms)
        assert per_token[b, m].item() == pytest.approx(math.log(p), abs=1e-4)
        total -= math.log(p)
    assert loss.item() == pytest.approx(total / max(1, mask.sum().item()), abs=1e-4)
    assert not per_token[~mask].any()


@given(shapes)
@settings(max_examples=40, deadline=None)
def test_sequence_marginal_is_the_written_out_sum(shape: tuple[int, int, int, int]) -> None:
    score, log_prob, mask, present = example(shape)
    loss, per_query = sequence_marginal(score, log_prob, mask, present)
    total = 0.0
    for b in mask.any(1).nonzero()[:, 0].tolist():
        likelihood = [math.exp(log_prob[b, n][mask[b]].sum().item()) for n in range(score.shape[1])]
        p = sum(pz * py for pz, py in zip(priors(score, present, b), likelihood, strict=True))
        assert per_query[b].item() == pytest.approx(math.log(p), abs=1e-4)
        total -= math.log(p)
    assert loss.item() == pytest.approx(total / max(1, mask.any(1).sum().item()), abs=1e-4)


@given(shapes)
@settings(max_examples=20, deadline=None)
def test_one_masked_piece_makes_both_equal(shape: tuple[int, int, int, int]) -> None:
    score, log_prob, _, present = example(shape)
    mask = torch.zeros(log_prob.shape[0], log_prob.shape[2], dtype=torch.bool)
    mask[:, 0] = True
    one, _ = token_marginal(score, log_prob, mask, present)
    assert_close(one, sequence_marginal(score, log_prob, mask, present)[0])


@pytest.mark.parametrize("marginal", [token_marginal, sequence_marginal])
@given(shape=shapes)
@settings(max_examples=40, deadline=None)
def test_the_gradient_on_a_score_is_the_papers_r(marginal, shape: tuple[int, int, int, int]) -> None:
    """r(z) = [p(y|z,x) / p(y|x) - 1] p(z|x) (appendix A), which is posterior minus prior: of the span, or summed over its pieces."""
    score, log_prob, mask, present = example(shape)
    score.requires_grad_()
    marginal(score, log_prob, mask, present, normaliser=1.0)[0].backward()
    expected = torch.zeros_like(score, requires_grad=False)
    for b in range(len(score)):
        hidden = mask[b].nonzero()[:, 0].tolist()
        for y in [[m] for m in hidden] if marginal is token_marginal else [hidden][: len(hidden)]:
            prior = priors(score.detach(), present, b)
            likelihood = [math.exp(log_prob[b, n, y].sum().item()) for n in range(score.shape[1])]
            p_y = sum(pz * py for pz, py in zip(prior, likelihood, strict=True))
            for n, (p_z, p_y_z) in enumerate(zip(prior, likelihood, strict=True)):
                r = (p_y_z / p_y - 1) * p_z
                assert r == pytest.approx(p_y_z * p_z / p_y - p_z, abs=1e-12)
                expected[b, n] += r
    assert_close(-score.grad, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("marginal", [token_marginal, sequence_marginal])
@given(shape=shapes)
@settings(max_examples=20, deadline=None)
def test_candidates_that_are_all_null_are_worth_nothing(marginal, shape: tuple[int, int, int, int]) -> None:
    """Every candidate says what the null document says: p(y|x) is p(y|null), and the retriever has nothing to learn."""
    score, log_prob, mask, present = example(shape)
    log_prob, score = log_prob[:, :1].expand_as(log_prob), score.requires_grad_()
    loss, log_p = marginal(score, log_prob, mask, present)
    loss.backward()
    alone, log_p_null = marginal(score[:, :1], log_prob[:, :1], mask)  # one candidate: its prior is 1
    assert_close(log_p, log_p_null, atol=1e-5, rtol=1e-5)
    assert_close(loss, alone, atol=1e-5, rtol=1e-5)
    assert_close(log_p_null.sum(), log_prob[:, 0][mask].sum(), atol=1e-5, rtol=1e-5)
    assert score.grad.abs().max() < 1e-6
    utility = retrieval_utility(score, log_prob, mask, present)
    assert utility.token_gain.abs() < 1e-5 and not utility.document_BN.any() and not utility.top_1_B.any()


def test_the_worked_example_of_the_paper_review() -> None:
    score = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    prior = score.detach().softmax(1)[0]
    assert_close(prior, torch.tensor([0.665, 0.245, 0.090]), atol=5e-4, rtol=0)
    other = (0.5 - 0.6 * prior[0]) / (1 - prior[0])  # makes p(y) = .5
    log_prob = torch.tensor([[[0.6], [other], [other]]]).log()
    loss, _ = token_marginal(score, log_prob, torch.ones(1, 1, dtype=torch.bool))
    loss.backward()
    assert loss.item() == pytest.approx(-math.log(0.5), abs=1e-6)
    assert -score.grad[0, 0].item() == pytest.approx((0.6 / 0.5 - 1) * 0.665, abs=1e-3)


@pytest.mark.parametrize("marginal", [token_marginal, sequence_marginal])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_empty_batch_has_loss_zero_and_finite_gradients(marginal, dtype: torch.dtype) -> None:
    score = torch.randn(2, 3).to(dtype).requires_grad_()
    log_prob = torch.full((2, 3, 2), -60.0).to(dtype).requires_grad_()
    loss, _ = marginal(score, log_prob, torch.zeros(2, 2, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert not score.grad.any()
    assert not log_prob.grad.any()


def test_shards_with_a_global_normaliser_add_up() -> None:
    score, log_prob, mask, _ = example((3, 4, 3, 9))
    whole, _ = token_marginal(score, log_prob, mask)
    rows = [slice(i, i + 1) for i in range(3)]
    parts = [token_marginal(score[r], log_prob[r], mask[r], normaliser=mask.sum())[0] for r in rows]
    assert_close(sum(parts), whole)


def test_an_absent_candidate_gets_no_gradient_whatever_it_holds() -> None:
    score, log_prob = torch.tensor([[0.0, 50.0]], requires_grad=True), torch.tensor([[[-1.0], [-math.inf]]])
    loss, _ = token_marginal(score, log_prob, torch.ones(1, 1).bool(), torch.tensor([[True, False]]))
    loss.backward()
    assert loss.item() == pytest.approx(1.0)
    assert score.grad.tolist() == [[0.0, 0.0]]


def test_retrieval_utility() -> None:
    score = torch.tensor([[0.0, 2.0, 1.0], [0.0, 1.0, 9.0], [3.0, 0.0, 0.0]])
    log_prob = torch.tensor([[-3.0, -1.0, -4.0], [-2.0, -2.5, -0.1], [-1.0, -1.0, -1.0]])
    log_prob = log_prob[:, :, None].repeat(1, 1, 2)
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    present = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
    utility = retrieval_utility(score, log_prob, mask, present)
    assert_close(utility.document_BN, torch.tensor([[0.0, 4.0, -2.0], [0.0, -0.5, 0.0], [0.0, 0.0, 0.0]]))
    assert_close(utility.top_1_B, torch.tensor([4.0, -0.5, 0.0]))
    null_shares = [priors(score, present, b)[0] for b in range(3)]
    assert_close(utility.null_share_B, torch.tensor(null_shares))
    _, per_token = token_marginal(score, log_prob, mask, present)
    gain = sum((per_token[b, m] - log_prob[b, 0, m]).item() for b, m in mask.nonzero().tolist()) / mask.sum().item()
    assert utility.token_gain.item() == pytest.approx(gain, abs=1e-6)


@given(shapes)
@settings(max_examples=60, deadline=None)
def test_the_best_block_is_a_real_one_however_likely_the_null_document_is(shape: tuple[int, int, int, int]) -> None:
    score, log_prob, mask, present = example(shape)
    score[:, 0] = 50.0
    utility = retrieval_utility(score, log_prob, mask, present)
    for b in range(len(score)):
        real = [n for n in range(1, score.shape[1]) if present[b, n]]
        gains = [(log_prob[b, n] - log_prob[b, 0])[mask[b]].sum().item() for n in real]
        best = max(range(len(real)), key=lambda place: score[b, real[place]].item(), default=None)
        assert utility.document_BN[b, real].tolist() == pytest.approx(gains, abs=1e-5)
        assert utility.top_1_B[b].item() == pytest.approx(0.0 if best is None else gains[best], abs=1e-5)


@given(shapes)
@settings(max_examples=20, deadline=None)
def test_the_gradient_of_the_marginal_is_prior_minus_posterior(shape: tuple[int, int, int, int]) -> None:
    score, log_prob, mask, present = example(shape)
    score.requires_grad_()
    sequence_marginal(score, log_prob, mask, present)[0].backward()
    expected, asked = torch.zeros_like(score), int(mask.any(1).sum())
    for b in mask.any(1).nonzero()[:, 0].tolist():
        prior = priors(score, present, b)
        joint = [p * math.exp(row[mask[b]].sum().item()) for p, row in zip(prior, log_prob[b], strict=True)]
        expected[b] = (torch.tensor(prior) - torch.tensor(joint) / sum(joint)) / asked
    assert score.grad is not None
    assert_close(score.grad, expected, atol=1e-4, rtol=1e-4)
