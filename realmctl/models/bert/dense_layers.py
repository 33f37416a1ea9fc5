"""Faster float32 dense layers on AMD processors with AVX-512.

What: `linear` computes the same product as `nn.Linear`, with the library oneDNN instead of MKL. Both come with PyTorch.
When: float32, on a CPU, outside autocast, on an AMD processor where PyTorch uses AVX-512, for layers of at least 256 inputs
and outputs. Otherwise `nn.Linear` runs.
Why: on these processors MKL reaches less than half of oneDNN's speed, but it is faster for narrow layers
(benchmarks/pretrain_step.md).

oneDNN compiles and caches code for every shape that it sees. So the tokens are cut into pieces of a few sizes. Results
differ from MKL's by float32 rounding, because the sums are taken in another order.
Legend: T tokens, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from realmctl.models.precision import processor

_PIECE = 512
"""Tokens of one product. oneDNN reaches its full speed from 256 tokens on."""

_NARROW = 256
"""MKL is faster for a layer with fewer inputs or outputs than this."""

_STEP = 64
"""The last oneDNN piece of a batch has a multiple of this many tokens. MKL computes the tokens that remain."""


def linear(layer: nn.Linear, state_TI: Tensor) -> Tensor:
    """Return `layer(state)`, [..., I] to [..., O], computed by the faster library. Supports first-order gradients only."""
    plain = layer.weight.dtype == state_TI.dtype == torch.float32 and state_TI.device.type == "cpu"
    if not plain or min(layer.weight.shape) < _NARROW or torch.is_autocast_enabled("cpu") or not onednn_is_faster():
        output: Tensor = layer(state_TI)
        return output
    output_TO: Tensor = _Linear.apply(state_TI.flatten(0, -2), layer.weight, layer.bias)  # type: ignore[no-untyped-call]
    return output_TO.view(*state_TI.shape[:-1], len(layer.weight))


def onednn_is_faster() -> bool:
    """Return whether `linear` should use oneDNN.

    True on an AMD processor where PyTorch uses AVX-512 (the environment variable ATEN_CPU_CAPABILITY can forbid it) and
    offers oneDNN's linear product.
    """
    wide = "AuthenticAMD" in processor() and torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _Linear(torch.autograd.Function):
    """`F.linear` and its gradients."""

    @staticmethod
    def forward(ctx: Any, state_TI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        ctx.save_for_backward(state_TI, weight_OI)
        return _by_pieces(state_TI, weight_OI, bias_O)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_TO: Tensor) -> tuple[Tensor | None, ...]:
        state_TI, weight_OI = ctx.saved_tensors
        needs_state, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            _by_pieces(gradient_TO, weight_OI.t(), None) if needs_state else None,
            _weight_gradient(gradient_TO, state_TI) if needs_weight else None,
            gradient_TO.sum(0) if needs_bias else None,
        )


def _by_pieces(state_TI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
    output_TO = state_TI.new_empty(len(state_TI), len(weight_OI))
    for piece in _pieces(len(state_TI)):
        output_TO[piece] = _library_for(piece)(state_TI[piece], weight_OI, bias_O)
    return output_TO


def _weight_gradient(gradient_TO: Tensor, state_TI: Tensor) -> Tensor:
    total_OI = state_TI.new_zeros(gradient_TO.shape[1], state_TI.shape[1])
    for piece in _pieces(len(state_TI)):
        total_OI += _library_for(piece)(gradient_TO[piece].t(), state_TI[piece].t(), None)
    return total_OI


def _pieces(tokens: int) -> list[slice]:
    whole = tokens - tokens % _STEP
    cuts = [*range(0, whole, _PIECE), whole, tokens]
    return [slice(start, stop) for start, stop in pairwise(cuts) if start < stop]


def _library_for(piece: slice) -> Callable[[Tensor, Tensor, Tensor | None], Tensor]:
    return F.linear if (piece.stop - piece.start) % _STEP else _onednn


def _onednn(left_TI: Tensor, right_OI: Tensor, bias_O: Tensor | None) -> Tensor:
    product_TO: Tensor = torch.ops.mkldnn._linear_pointwise(left_TI, right_OI, bias_O, "none", [], "")
    return product_TO
