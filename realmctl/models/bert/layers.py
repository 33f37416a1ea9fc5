"""One BERT layer, computed only for real tokens and only at positions whose output is needed.

The weights are those of a `BertLayer`, or of a layer of transformers with the same names. Matrix products run over the tokens
of all rows, laid end to end (`token_layout`), and so does attention (`attention`). Where only some positions of the last
layer are needed ([CLS], the masks), it computes queries for these positions only. The result is exact.
Legend: B rows, T real tokens of the batch, P positions read, H hidden.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks

from realmctl.models.bert.activations import ACTIVATIONS
from realmctl.models.bert.attention import attend
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.modules import BertLayer, draw_weights
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.families.known import family
from realmctl.models.precision import onednn_is_faster

_WORTH_RECOMPUTING = 1 << 20
"""Activations with at least this many elements are computed again in the backward pass.

Such activations are a quarter of the memory that a layer would keep."""


def fresh_layer(config: Any) -> BertLayer:
    """Return a layer of BERT with random weights, of the sizes of an encoder of any family."""
    layer = BertLayer(config if config.model_type == BertConfig.model_type else _as_bert(config))
    draw_weights(layer, config)
    return layer


def _as_bert(config: Any) -> BertConfig:
    rate = max(getattr(config, name) for name in family(config.model_type).rates)
    return BertConfig(
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        hidden_dropout_prob=rate,
        attention_probs_dropout_prob=rate,
    )


def run_layer(layer: Any, state_TH: Tensor, rows: TokenLayout, position_BP: Tensor | None = None) -> Tensor:
    """Return the layer's output for all tokens, [T, H], or for the given positions of each row, [B, P, H]."""
    attention = layer.attention.self
    residual = state_TH if position_BP is None else rows.at(state_TH, position_BP)
    inputs = ((attention.query, residual), (attention.key, state_TH), (attention.value, state_TH))
    heads = attention.num_attention_heads
    query, key, value = (linear(part, state).view(*state.shape[:-1], heads, -1) for part, state in inputs)
    context = attend(query, key, value, rows, attention.dropout.p if attention.training else 0.0)
    return after_attention(layer, context.flatten(-2), residual)


def after_attention(layer: Any, context: Tensor, residual: Tensor) -> Tensor:
    """Return the layer's output, [..., H], for what its heads read and what the layer was given."""
    mixed = linear(layer.attention.output.dense, context)
    attended = _add_and_normalise(layer.attention.output, mixed, residual)
    contracted = _contract(layer, linear(layer.intermediate.dense, attended))
    return _add_and_normalise(layer.output, contracted, attended)


def _add_and_normalise(part: Any, state: Tensor, residual: Tensor) -> Tensor:
    normalised: Tensor = part.LayerNorm(part.dropout(state) + residual)
    return normalised


def _contract(layer: Any, expanded: Tensor) -> Tensor:
    """Project from the inner width back to H. For the backward pass a large activation is not kept, only its input."""
    activation = ACTIVATIONS[layer.attention.self.config.hidden_act]
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


_NARROW = 256
"""MKL is faster for a layer with fewer inputs or outputs than this."""

_STEP = 64
"""oneDNN computes a multiple of this many tokens, because it compiles code for every number. MKL computes the tokens that remain."""


def linear(layer: nn.Linear, state_TI: Tensor) -> Tensor:
    """Return `layer(state)`, [..., I] to [..., O], computed by the faster library. Supports first-order gradients only."""
    plain = layer.weight.dtype == state_TI.dtype == torch.float32 and state_TI.device.type == "cpu"
    if not plain or min(layer.weight.shape) < _NARROW or torch.is_autocast_enabled("cpu") or not onednn_is_faster():
        output: Tensor = layer(state_TI)
        return output
    output_TO: Tensor = _Linear.apply(state_TI.flatten(0, -2), layer.weight, layer.bias)  # type: ignore[no-untyped-call]
    return output_TO.view(*state_TI.shape[:-1], len(layer.weight))


class _Linear(torch.autograd.Function):
    """`F.linear` and its gradients."""

    @staticmethod
    def forward(ctx: Any, state_TI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        ctx.save_for_backward(state_TI, weight_OI)
        return _product(state_TI, weight_OI, bias_O)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_TO: Tensor) -> tuple[Tensor | None, ...]:
        state_TI, weight_OI = ctx.saved_tensors
        needs_state, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            _product(gradient_TO, weight_OI.t(), None) if needs_state else None,
            gradient_TO.t() @ state_TI if needs_weight else None,  # MKL is faster where the tokens are summed over
            gradient_TO.sum(0) if needs_bias else None,
        )


def _product(state_TI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
    whole = len(state_TI) // _STEP * _STEP
    rest_TI = state_TI[whole:]
    if not whole:
        return F.linear(rest_TI, weight_OI, bias_O)
    output_TO = _onednn(state_TI[:whole], weight_OI, bias_O)
    return torch.cat([output_TO, F.linear(rest_TI, weight_OI, bias_O)]) if len(rest_TI) else output_TO


def _onednn(state_TI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
    product_TO: Tensor = torch.ops.mkldnn._linear_pointwise(state_TI, weight_OI, bias_O, "none", [], "")
    return product_TO
