"""One BERT layer, computed only for real tokens and only at positions whose output is needed.

The weights stay in transformers' `BertLayer`; this file changes how they are applied. Matrix products run over the tokens
of all rows, laid end to end (`token_layout`), and so does attention (`attention`). Where only some positions of the last
layer are needed ([CLS], the masks), it computes queries for these positions only. The result is exact.
Legend: B rows, T real tokens of the batch, P positions read, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from transformers import BertConfig, PretrainedConfig
from transformers.activations import ACT2FN
from transformers.models.bert.modeling_bert import BertLayer, BertOutput, BertSelfOutput

from realmctl.models.bert.attention import attend
from realmctl.models.bert.dense_layers import linear
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.families.known import family

_FUSED_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
}

_WORTH_RECOMPUTING = 1 << 20
"""Activations with at least this many elements are computed again in the backward pass.

Such activations are a quarter of the memory that a layer would keep."""


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


def _activation(layer: BertLayer) -> Callable[[Tensor], Tensor]:
    name = layer.attention.self.config.hidden_act
    activation: Callable[[Tensor], Tensor] = _FUSED_ACTIVATIONS.get(name) or ACT2FN[name]
    return activation
