"""Losses within a batch are those of their definitions."""

import pytest
import torch
from hypothesis import strategies as st
from torch.testing import assert_close

from realmctl.models.in_batch import divergence, in_batch_scores, in_batch_softmax

shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**16))


def test_in_batch_softmax_is_cross_entropy_on_the_diagonal() -> None:
    query, block = torch.randn(4, 8), torch.randn(4, 8)
    block[2] = query[2] * 10
    loss, accuracy = in_batch_softmax(in_batch_scores(query, block), torch.arange(4))
    score = query @ block.T
    assert loss.item() == pytest.approx(-score.log_softmax(1).diag().mean().item(), abs=1e-5)
    assert accuracy.item() == (score.argmax(1) == torch.arange(4)).float().mean().item()


def test_in_batch_softmax_over_the_blocks_of_all_processes() -> None:
    query, block = torch.randn(4, 8), torch.randn(4, 8)
    whole, _ = in_batch_softmax(in_batch_scores(query, block), torch.arange(4))
    halves = [in_batch_softmax(in_batch_scores(query[i : i + 2], block), torch.arange(i, i + 2))[0] for i in (0, 2)]
    assert_close((halves[0] + halves[1]) / 2, whole)


def test_a_masked_block_is_no_negative() -> None:
    query, block = torch.randn(2, 8), torch.randn(2, 8)
    loss, _ = in_batch_softmax(in_batch_scores(query, block, torch.eye(2).bool()), torch.arange(2))
    assert loss.item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_the_divergence_is_that_of_the_definition_with_its_closed_gradient(masked: bool) -> None:
    """KL(p0 || p) = sum p0 log(p0 / p), mean over the queries; its gradient is (p - p0) / B. A masked block has no part."""
    score, teacher = torch.randn(3, 5, dtype=torch.float64, requires_grad=True), torch.randn(3, 5, dtype=torch.float64)
    hidden = torch.zeros(3, 5, dtype=torch.bool)
    if masked:
        hidden[0, 1] = hidden[2, 4] = True
    least = torch.finfo(torch.float32).min
    loss = divergence(score.float().masked_fill(hidden, least), teacher.float().masked_fill(hidden, least))
    loss.backward()
    student, start = (each.detach().masked_fill(hidden, -torch.inf).softmax(1) for each in (score, teacher))
    expected = [start[b, c] * torch.log(start[b, c] / student[b, c]) for b, c in (~hidden).nonzero().tolist()]
    assert loss.item() == pytest.approx(float(sum(expected)) / 3, rel=1e-5)
    assert_close(score.grad, (student - start) / 3, atol=1e-6, rtol=1e-5)
