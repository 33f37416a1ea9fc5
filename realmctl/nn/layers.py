"""One BERT layer over the real tokens of a batch: no work on padding, none on positions nobody reads.

Transformers keeps the weights (`BertLayer`); this file replaces only the way they are applied. The
matrix products see the tokens of all rows end to end, and attention alone sees rows. A last layer of
which only some positions are read (`[CLS]`, the masks) computes queries for those alone, which is exact.
Legend: B rows, L tokens of the longest row, T real tokens of the batch, P positions read, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.activations import ACT2FN
from transformers.models.bert.modeling_bert import BertLayer

_FAST_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
}


class Rows:
    """Where the real tokens of a padded batch lie: `pack` drops the padding, `pad` puts it back."""

    def __init__(self, mask_BL: Tensor) -> None:
        self.shape = mask_BL.shape
        lengths_B = mask_BL.sum(1)
        self.first_B = lengths_B.cumsum(0) - lengths_B
        self.token_T = mask_BL.flatten().nonzero()[:, 0]
        self.full = self.token_T.numel() == mask_BL.numel()
        self.key_mask: Tensor | None = None if self.full else mask_BL[:, None, None, :]

    def pack(self, padded_BLX: Tensor) -> Tensor:
        """[B, L, ...] to [T, ...]."""
        flat = padded_BLX.flatten(0, 1)
        return flat if self.full else flat.index_select(0, self.token_T)

    def pad(self, packed_TX: Tensor) -> Tensor:
        """[T, X] to [B, L, X], zeros at padding."""
        if not self.full:
            zeros = packed_TX.new_zeros(self.shape.numel(), packed_TX.shape[-1])
            packed_TX = zeros.index_copy(0, self.token_T, packed_TX)
        return packed_TX.view(*self.shape, -1)

    def at(self, packed_TX: Tensor, position_BP: Tensor) -> Tensor:
        """[T, X] to [B, P, X]: the tokens at the given positions of each row."""
        return packed_TX[self.first_B[:, None] + position_BP]


def run_layer(layer: BertLayer, state_TH: Tensor, rows: Rows, position_BP: Tensor | None = None) -> Tensor:
    """The layer's output for all tokens, [T, H], or for the given positions of each row, [B, P, H]."""
    attention = layer.attention.self
    if position_BP is None:
        residual = state_TH
        projected = _project(state_TH, attention.query, attention.key, attention.value)
        query, key, value = rows.pad(projected).chunk(3, -1)
    else:
        residual = rows.at(state_TH, position_BP)
        query = attention.query(residual)
        key, value = rows.pad(_project(state_TH, attention.key, attention.value)).chunk(2, -1)
    query, key, value = (_split_heads(part, attention.num_attention_heads) for part in (query, key, value))
    context = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=rows.key_mask,
        dropout_p=attention.dropout.p if attention.training else 0.0,
    )
    context = context.transpose(1, 2).flatten(2)
    attended = layer.attention.output(rows.pack(context) if position_BP is None else context, residual)
    output: Tensor = layer.output(_activation(layer)(layer.intermediate.dense(attended)), attended)
    return output


def _split_heads(projected_BLH: Tensor, heads: int) -> Tensor:
    """[B, L, H] to [B, heads, L, H / heads]."""
    batch, length, hidden = projected_BLH.shape
    return projected_BLH.view(batch, length, heads, hidden // heads).transpose(1, 2)


def _project(state_TH: Tensor, *linears: nn.Linear) -> Tensor:
    """Several linear maps of one input as one matrix product."""
    weight = torch.cat([linear.weight for linear in linears])
    return F.linear(state_TH, weight, torch.cat([linear.bias for linear in linears]))


def _activation(layer: BertLayer) -> Callable[[Tensor], Tensor]:
    name = layer.attention.self.config.hidden_act
    activation: Callable[[Tensor], Tensor] = _FAST_ACTIVATIONS.get(name) or ACT2FN[name]
    return activation
