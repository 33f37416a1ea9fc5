import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.encoder import hidden_states
from realmctl.models.inputs import Collator, block_token_mask
from realmctl.models.span_head import (
    LOWEST,
    SpanReader,
    marginal_loss,
    reader_loss,
    retrieval_loss,
    span_table,
    within_block,
)


def test_span_counts_of_the_official_code() -> None:
    assert len(span_table(320, 10)[0]) == 3155
    assert len(span_table(10, 10)[0]) == 55
    assert len(span_table(3, 10)[0]) == 6


def test_span_table_holds_every_span_once() -> None:
    start_S, end_S = span_table(7, 3)
    spans = set(zip(start_S.tolist(), end_S.tolist(), strict=True))
    assert spans == {(i, j) for i in range(7) for j in range(i, min(7, i + 3))}
    assert len(spans) == len(start_S)


@pytest.fixture
def reader_batch(collator: Collator):
    packed, start_B = collator.reader([[7, 8], [9]], [[20, 21, 22, 23], [30, 31]], length=32)
    return packed, block_token_mask(packed, start_B)


def test_scores_are_the_formula_and_invalid_spans_are_lowest(mlm: BertForMaskedLM, reader_batch) -> None:
    packed, block_mask = reader_batch
    reader = SpanReader.from_bert(mlm.bert).eval()
    with torch.no_grad():
        reader.head.dense.bias.normal_()
        reader.head.output.bias.fill_(0.3)
    score, (starts, ends) = reader.span_scores(packed, block_mask, 3)
    state, head = hidden_states(reader.bert, packed), reader.head
    for b in range(2):
        for s, (i, j) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            if not (block_mask[b, i] and block_mask[b, j]):
                assert score[b, s] == LOWEST
                continue
            a_start, a_end = head.dense.weight.split(256)
            bias = head.dense.bias[:256] + head.dense.bias[256:]
            hidden = F.relu(a_start @ state[b, i] + a_end @ state[b, j] + bias)
            expected = head.output(F.layer_norm(hidden, (256,), head.norm.weight, head.norm.bias, 1e-3))
            assert_close(score[b, s], expected[0], atol=1e-5, rtol=1e-5)


def test_save_and_load(mlm: BertForMaskedLM, reader_batch, tmp_path: Path) -> None:
    reader = SpanReader.from_bert(mlm.bert).eval()
    reader.save(tmp_path)
    with torch.inference_mode():
        loaded = SpanReader.load(tmp_path).span_scores(*reader_batch, 4)[0]
        assert torch.equal(loaded, reader.span_scores(*reader_batch, 4)[0])
    assert SpanReader.load(tmp_path).positions == mlm.config.max_position_embeddings


def test_losses_are_the_share_of_the_correct_ones() -> None:
    score = torch.randn(2, 3, 4)
    correct = torch.rand(2, 3, 4) < 0.4
    share = (score.flatten(1).softmax(1) * correct.flatten(1)).sum(1)
    assert_close(reader_loss(score, correct), -share.log())
    assert_close(retrieval_loss(score[:, 0], correct[:, 0] | True), torch.zeros(2), atol=1e-6, rtol=0)


def test_the_marginal_loss_is_the_written_out_sum() -> None:
    """Equation 1, with p(y|z,x) the share of the correct spans of a block, and a question without one."""
    generator = torch.Generator().manual_seed(5)
    span, block = torch.randn(4, 3, 6, generator=generator) * 2, torch.randn(4, 3, generator=generator) * 2
    correct = torch.rand(4, 3, 6, generator=generator) < 0.3
    correct[1], correct[2, 1:] = False, False
    span[0, 2, 4:] = LOWEST  # no spans of this block
    correct[0, 2, 4:] = False
    span, block = span.requires_grad_(), block.requires_grad_()
    loss = marginal_loss(within_block(span) + block[..., None], block, correct)
    for question in range(4):
        found = 0.0
        for z, prior in enumerate(block[question].softmax(0).tolist()):
            shares = span[question, z].softmax(0).tolist()
            found += prior * sum(
                share for share, right in zip(shares, correct[question, z].tolist(), strict=True) if right
            )
        assert loss[question].item() == pytest.approx(-math.log(found) if found else 0.0, abs=1e-5)
    loss.sum().backward()
    assert not span.grad[1].any() and not block.grad[1].any()
    assert block.grad[2, 0] < 0 < block.grad[2, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_question_without_an_answer_has_loss_zero_and_finite_gradients(dtype: torch.dtype) -> None:
    score = torch.full((2, 2, 3), -40.0).to(dtype).requires_grad_()
    correct = torch.zeros(2, 2, 3, dtype=torch.bool)
    correct[1, 0, 1] = True
    loss = reader_loss(score, correct)
    loss.sum().backward()
    assert loss[0].item() == 0
    assert not score.grad[0].any()
    assert score.grad[1].isfinite().all()
    assert score.grad[1, 0, 1] < 0


def test_blocks_without_a_span_give_the_retrieval_scores_finite_gradients(mlm: BertForMaskedLM, collator) -> None:
    """With minus infinity as the masked score, their gradient is not a number."""
    packed, start_B = collator.reader([[7, 8], [7, 8]], [[], []], length=32)
    spans, _ = SpanReader.from_bert(mlm.bert).span_scores(packed, block_token_mask(packed, start_B), 3)
    assert spans.isfinite().all()
    retrieval = torch.tensor([[3.0, -50.0]], requires_grad=True)
    total = spans[None] + retrieval[:, :, None]
    reader_loss(total, torch.zeros_like(total, dtype=torch.bool)).sum().backward()
    assert torch.equal(retrieval.grad, torch.zeros_like(retrieval))


def test_masked_spans_get_no_gradient_through_the_model(mlm: BertForMaskedLM, reader_batch) -> None:
    reader = SpanReader.from_bert(mlm.bert).train()
    score, _ = reader.span_scores(*reader_batch, 3)
    correct = torch.zeros_like(score, dtype=torch.bool)
    reader_loss((score + torch.tensor([[-50.0], [3.0]]))[None], correct[None]).sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in reader.parameters())
    reader.zero_grad()
    score, _ = reader.span_scores(*reader_batch, 3)
    correct[0] = score[0] == score[0].max()
    reader_loss((score + torch.tensor([[-50.0], [3.0]]))[None], correct[None]).sum().backward()
    assert all(p.grad.isfinite().all() for p in reader.parameters())
    assert any(p.grad.any() for p in reader.bert.parameters())
