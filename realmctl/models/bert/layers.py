"""One BERT layer, computed only for real tokens and only at positions whose output is needed.

The weights stay in transformers' `BertLayer`; this file changes how they are applied. Matrix products run over the tokens
of all rows, laid end to end. Attention runs over rows of equal length together, without padding. Where only some positions of the last layer are needed ([CLS], the
masks), it computes queries for these positions only. The result is exact.
Legend: B rows, L tokens of the longest row, T real tokens of the batch, P positions read, H hidden,
A heads, X anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from transformers import BertConfig, PretrainedConfig
from transformers.activations import ACT2FN
from transformers.models.bert.modeling_bert import BertLayer, BertOutput, BertSelfOutput

from realmctl.models.bert.dense_layers import linear
from realmctl.models.families.known import family
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import full_precision, to_device

_FUSED_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
}

_BF16_MULTIPLE = 64
"""On a CPU in bfloat16, the number of packed tokens is rounded up to a multiple of this by filler tokens.

There oneDNN compiles code for every shape that it has not met, which takes longer than the product itself, and keeps it
(benchmarks/pretrain_step.md). A filler token is a copy of a real one, but it has no attention and nothing reads it."""

_WORTH_RECOMPUTING = 1 << 20
"""Activations with at least this many elements are computed again in the backward pass.

Such activations are a quarter of the memory that a layer would keep."""


class TokenLayout:
    """Positions of the real tokens in a padded batch. `pack` drops the padding, `pad` puts it back.

    Packed rows lie end to end by rising length, so rows of equal length are neighbours. The positions are computed on the CPU and
    sent to the batch's device, which then works on without an answer.

    On a CPU in bfloat16, filler tokens follow them.

    groups: (rows, tokens of each) of every length that occurs, by rising length.
    filler: number of filler tokens.
    order_B: int64, the rows of the batch in packed order. place_B: int64, the place of each row in that order.
    """

    def __init__(self, packed: TokenBatch) -> None:
        self.mask_BL = packed.mask_BL
        mask_BL = packed.mask_BL if packed.mask_on_host is None else packed.mask_on_host
        lengths_B, order_B = mask_BL.sum(1).sort(stable=True)
        place_B = order_B.argsort()
        self.groups = [(count, length) for length, count in Counter[int](lengths_B.tolist()).items()]
        row_T, position_T = mask_BL[order_B].nonzero(as_tuple=True)
        device = self.mask_BL.device
        rounded = device.type == "cpu" and torch.is_autocast_enabled("cpu")
        self.filler = -len(row_T) % _BF16_MULTIPLE if rounded else 0
        self.order_B, self.place_B = (to_device(each, device) for each in (order_B, place_B))
        self.first_B1 = to_device((lengths_B.cumsum(0) - lengths_B)[place_B, None], device)
        token_T = order_B[row_T] * mask_BL.shape[1] + position_T
        if self.filler:
            token_T = torch.cat([token_T, token_T[:1].expand(self.filler)])
        self.token_T = to_device(token_T, device)

    def pack(self, padded_BLX: Tensor) -> Tensor:
        """Drop the padding: [B, L, ...] to [T, ...], then filler tokens."""
        return padded_BLX.flatten(0, 1).index_select(0, self.token_T)

    def pad(self, packed_TX: Tensor) -> Tensor:
        """Put the padding back: [T, ...] to [B, L, ...], zeros at padding."""
        zeros = packed_TX.new_zeros(self.mask_BL.numel(), *packed_TX.shape[1:])
        real = len(self.token_T) - self.filler
        padded = zeros.index_copy(0, self.token_T[:real], packed_TX[:real])
        return padded.view(*self.mask_BL.shape, *packed_TX.shape[1:])

    def at(self, packed_TX: Tensor, position_BP: Tensor) -> Tensor:
        """Return the tokens at the given positions of each row: [T, X] to [B, P, X]."""
        return packed_TX[self.first_B1 + position_BP]


def fresh_layer(config: PretrainedConfig) -> BertLayer:
    """Return a layer of BERT with random weights, of the sizes of an encoder of any family."""
    layer = BertLayer(config if isinstance(config, BertConfig) else _as_bert(config))
    for module in layer.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=config.initializer_range)
            nn.init.zeros_(module.bias)
    return layer


def _as_bert(config: PretrainedConfig) -> BertConfig:
    rate = max(getattr(config, name) for name in family(config.model_type).rates)
    return BertConfig(
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        hidden_dropout_prob=rate,
        attention_probs_dropout_prob=rate,
        attn_implementation="sdpa",
    )


def run_layer(layer: BertLayer, state_TH: Tensor, rows: TokenLayout, position_BP: Tensor | None = None) -> Tensor:
    """Return the layer's output for all tokens, [T, H], or for the given positions of each row, [B, P, H]."""
    attention = layer.attention.self
    residual = state_TH if position_BP is None else rows.at(state_TH, position_BP)
    inputs = ((attention.query, residual), (attention.key, state_TH), (attention.value, state_TH))
    heads = attention.num_attention_heads
    query, key, value = (linear(part, state).view(*state.shape[:-1], heads, -1) for part, state in inputs)
    attend = _attend_by_length if state_TH.device.type == "cpu" else _attend_padded
    context = attend(query, key, value, rows, attention.dropout.p if attention.training else 0.0)
    mixed = linear(layer.attention.output.dense, context.flatten(-2))
    attended = _add_and_normalise(layer.attention.output, mixed, residual)
    contracted = _contract(layer, linear(layer.intermediate.dense, attended))
    return _add_and_normalise(layer.output, contracted, attended)


def _add_and_normalise(part: BertSelfOutput | BertOutput, state: Tensor, residual: Tensor) -> Tensor:
    normalised: Tensor = part.LayerNorm(part.dropout(state) + residual)
    return normalised


def _contract(layer: BertLayer, expanded: Tensor) -> Tensor:
    """Project from the inner width back to H. For the backward pass a large activation is not kept, only its input."""
    activation = _activation(layer)
    activated = activation(expanded)
    if not torch.is_grad_enabled() or expanded.numel() < _WORTH_RECOMPUTING:
        return linear(layer.output.dense, activated)
    kept, place = expanded.detach(), activated.data_ptr()

    def pack(saved: Tensor) -> Tensor | torch.Size:
        return saved.shape if saved.data_ptr() == place and saved.is_contiguous() else saved

    def unpack(saved: Tensor | torch.Size) -> Tensor:
        return activation(kept).view(saved) if isinstance(saved, torch.Size) else saved

    with saved_tensors_hooks(pack, unpack):
        return linear(layer.output.dense, activated)


def _attend_by_length(query: Tensor, key_TAX: Tensor, value_TAX: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    """Attention inside each row, one call for all rows of a length, in the shape of `query`: [T, A, X] or [B, P, A, X].

    This is the fastest method on a CPU. With gradients it runs in float32, because the backward pass of PyTorch's
    attention takes several times as long in bfloat16 there (benchmarks/pretrain_step.md).
    """
    if torch.is_grad_enabled() and query.requires_grad and torch.is_autocast_enabled("cpu"):
        with full_precision(query.device):
            context = _attend_groups(query.float(), key_TAX.float(), value_TAX.float(), rows, dropout)
            return context.to(query.dtype)
    return _attend_groups(query, key_TAX, value_TAX, rows, dropout)


def _attend_groups(query: Tensor, key_TAX: Tensor, value_TAX: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    key, value = _by_length(key_TAX, rows), _by_length(value_TAX, rows)
    whole = query.ndim == 3
    asked = _by_length(query, rows) if whole else torch.split(query[rows.order_B], [count for count, _ in rows.groups])
    context = [_attention(q, k, v, None, dropout) for q, k, v in zip(asked, key, value, strict=True)]
    if whole:
        filler = query.new_zeros(rows.filler, *query.shape[1:])
        return torch.cat([*(each.flatten(0, 1) for each in context), filler])
    return torch.cat(context)[rows.place_B]


def _by_length(packed_TAX: Tensor, rows: TokenLayout) -> list[Tensor]:
    """Return the rows of each length, [rows, tokens, A, X]."""
    parts = torch.split(packed_TAX, [*(count * length for count, length in rows.groups), rows.filler])[:-1]
    return [part.view(*group, *packed_TAX.shape[1:]) for part, group in zip(parts, rows.groups, strict=True)]


def _attend_padded(query: Tensor, key_TAX: Tensor, value_TAX: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    """Attention inside each row, in one call over padded rows. This is the fastest method on an accelerator."""
    query_BLAX = rows.pad(query) if query.ndim == 3 else query
    key_BLAX, value_BLAX = rows.pad(key_TAX), rows.pad(value_TAX)
    context_BLAX = _attention(query_BLAX, key_BLAX, value_BLAX, rows.mask_BL[:, None, None, :], dropout)
    return rows.pack(context_BLAX) if query.ndim == 3 else context_BLAX


def _attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """All [B, tokens, A, X]; mask is bool, broadcastable to [B, A, query tokens, key tokens]."""
    heads_first = (query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2))
    return F.scaled_dot_product_attention(*heads_first, attn_mask=mask, dropout_p=dropout).transpose(1, 2)


def _activation(layer: BertLayer) -> Callable[[Tensor], Tensor]:
    name = layer.attention.self.config.hidden_act
    activation: Callable[[Tensor], Tensor] = _FUSED_ACTIVATIONS.get(name) or ACT2FN[name]
    return activation
