"""The places of real tokens: rows by rising length, and every token back where it was."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from realmctl.models.bert.attention import _Attention, attend_by_length
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.encoder import hidden_states, states_at
from realmctl.models.inputs import TokenBatch
from tests.fixtures.transformers_bert import as_transformers

LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=12)


def batch_of(lengths: list[int]) -> TokenBatch:
    """Random wordpieces, as many as `lengths` says in each row."""
    mask_BL = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids_BL = torch.randint(5, 300, mask_BL.shape, generator=torch.Generator().manual_seed(0)) * mask_BL
    return TokenBatch(ids_BL, mask_BL, torch.zeros_like(ids_BL))


@given(LENGTHS)
def test_rows_lie_end_to_end_by_rising_length(lengths: list[int]) -> None:
    batch = batch_of(lengths)
    rows = TokenLayout(batch)
    packed = rows.pack(batch.ids_BL)
    by_length = sorted(range(len(lengths)), key=lambda row: lengths[row])  # sorted() keeps the order of equal lengths
    assert packed.tolist() == [token for row in by_length for token in batch.ids_BL[row, : lengths[row]].tolist()]
    assert rows.groups == [(count, length) for length, count in sorted(Counter(lengths).items())]
    assert torch.equal(rows.pad(packed), batch.ids_BL)
    assert rows.order_B.tolist() == by_length and rows.order_B[rows.place_B].tolist() == list(range(len(lengths)))


@given(LENGTHS, st.integers(0, 1 << 30))
def test_a_position_of_each_row_is_found(lengths: list[int], number: int) -> None:
    batch = batch_of(lengths)
    rows = TokenLayout(batch)
    position_BP = torch.tensor([[number % length, length - 1] for length in lengths])
    assert torch.equal(rows.at(rows.pack(batch.ids_BL), position_BP), batch.ids_BL.gather(1, position_BP))


def test_rows_of_equal_length_do_not_see_each_other(mlm: BertForMaskedLM) -> None:
    """transformers' own forward pass, row by row, is the oracle: for all states and for some positions."""
    lengths = [6, 3, 6, 1, 3, 6, 9]
    batch, position_BP = batch_of(lengths), torch.tensor([[length - 1, 0] for length in lengths])
    states_BLH, at_BPH = hidden_states(mlm.bert, batch), states_at(mlm.bert, batch, position_BP)
    for row, length in enumerate(lengths):
        alone = as_transformers(mlm).bert(batch.ids_BL[row : row + 1, :length]).last_hidden_state[0]
        assert_close(states_BLH[row, :length], alone, atol=2e-6, rtol=1e-5)
        assert_close(at_BPH[row], alone[position_BP[row]], atol=2e-6, rtol=1e-5)


@given(LENGTHS, st.integers(0, 1 << 30))
def test_filler_in_bfloat16_changes_nothing_that_is_read(lengths: list[int], number: int) -> None:
    """Batches of different sizes have one packed size, so that PyTorch compiles few products (benchmarks/new_lengths.py)."""
    batch = batch_of(lengths)
    position_BP = torch.tensor([[number % length, length - 1] for length in lengths])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = TokenLayout(batch)
    packed = rows.pack(batch.ids_BL)
    assert len(packed) == sum(lengths) + rows.filler and len(packed) % 64 == 0 and rows.filler < 64
    assert torch.equal(rows.pad(packed), batch.ids_BL)
    assert torch.equal(rows.at(packed, position_BP), batch.ids_BL.gather(1, position_BP))


def test_states_and_gradients_in_bfloat16_are_those_of_float32_up_to_rounding(mlm: BertForMaskedLM) -> None:
    lengths = [6, 3, 6, 1, 3, 6, 9]
    batch, position_BP = batch_of(lengths), torch.tensor([[length - 1, 0] for length in lengths])
    weight_BLH = torch.randn(7, 9, mlm.config.hidden_size, generator=torch.Generator().manual_seed(1))
    found = {}
    for narrow in (False, True):
        mlm.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            states_BLH, at_BPH = hidden_states(mlm.bert, batch), states_at(mlm.bert, batch, position_BP)
        ((states_BLH * weight_BLH).sum() + at_BPH.sum()).backward()
        gradients = torch.cat([p.grad.flatten() for p in mlm.bert.parameters() if p.grad is not None])
        found[narrow] = (states_BLH.detach(), at_BPH.detach(), gradients)
    for exact, rounded in zip(found[False], found[True], strict=True):
        assert torch.linalg.vector_norm(rounded - exact) < 0.02 * torch.linalg.vector_norm(exact)


def test_attention_with_gradients_in_bfloat16_on_a_cpu_is_that_of_float32_up_to_rounding() -> None:
    """There the backward pass is our own: PyTorch's takes several times as long (benchmarks/attention.py)."""
    batch = batch_of([5, 3, 5])
    parts = [torch.randn(64, 2, 8, generator=torch.Generator().manual_seed(n)).bfloat16() for n in range(3)]
    mixed, oracle = ([part.clone().requires_grad_() for part in parts] for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = TokenLayout(batch)
        context = attend_by_length(mixed[0], mixed[1], mixed[2], rows, 0.0)
    context.float().square().sum().backward()
    wide = attend_by_length(oracle[0].float(), oracle[1].float(), oracle[2].float(), rows, 0.0).bfloat16()
    wide.float().square().sum().backward()
    pairs = [(context, wide), *((one.grad, two.grad) for one, two in zip(mixed, oracle, strict=True))]
    for found, wanted in pairs:
        assert torch.linalg.vector_norm((found - wanted).float()) < 0.02 * torch.linalg.vector_norm(wanted.float())
    assert not context[13:].any(), "filler tokens have no attention"


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_gradients_of_attention_are_those_of_finite_differences(dropout: float) -> None:
    """Dropout leaves out what the seed says, and scales the rest."""
    random = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 2, tokens, 3, dtype=torch.float64, generator=random) for tokens in (2, 4, 4))
    if not dropout:
        torch.testing.assert_close(
            _Attention.apply(query, key, value, 0.0), F.scaled_dot_product_attention(query, key, value)
        )

    def attention(*given: Tensor) -> Tensor:
        torch.manual_seed(1)
        found: Tensor = _Attention.apply(*given, dropout)
        return found

    given = [each.requires_grad_() for each in (query, key, value)]
    assert torch.autograd.gradcheck(attention, given)
    if dropout:
        ones = torch.ones(8, 8, 16, 4, dtype=torch.float64)
        assert abs(_Attention.apply(ones[..., :2], ones[..., :2], ones, dropout).mean() - 1) < 0.05
