"""The places of real tokens: rows by rising length, and every token back where it was."""

from __future__ import annotations

from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from transformers import BertForMaskedLM

from realmctl.nn.bert.encoder import hidden_states, states_at
from realmctl.nn.bert.layers import TokenLayout
from realmctl.nn.inputs import TokenBatch

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
        alone = mlm.bert(batch.ids_BL[row : row + 1, :length]).last_hidden_state[0]
        assert_close(states_BLH[row, :length], alone, atol=2e-6, rtol=1e-5)
        assert_close(at_BPH[row], alone[position_BP[row]], atol=2e-6, rtol=1e-5)
