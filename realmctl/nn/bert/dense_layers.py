"""Dense layers in float32 on AMD's processors with AVX-512, where PyTorch's matrix library, MKL, does not use its full width.

MKL reaches less than half there of what oneDNN does, which comes with PyTorch as well (benchmarks/pretrain_step.md). oneDNN
makes and keeps code for every shape it sees, so it is given pieces of few sizes. The rounding is float32's, the order of the
sums another.
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

from realmctl.nn.precision import processor

_PIECE = 512
"""Tokens of a product: oneDNN is at its full speed from 256."""

_STEP = 64
"""The rest of a batch is cut to a multiple of this; what is left of that goes to MKL."""


def linear(layer: nn.Linear, state_TI: Tensor) -> Tensor:
    """`layer(state)`, [..., I] to [..., O], by the faster library. Gradients of the first order alone."""
    plain = layer.weight.dtype == state_TI.dtype == torch.float32 and state_TI.device.type == "cpu"
    if not plain or torch.is_autocast_enabled("cpu") or not onednn_is_faster():
        output: Tensor = layer(state_TI)
        return output
    output_TO: Tensor = _Linear.apply(state_TI.flatten(0, -2), layer.weight, layer.bias)  # type: ignore[no-untyped-call]
    return output_TO.view(*state_TI.shape[:-1], len(layer.weight))


def onednn_is_faster() -> bool:
    """Whether this is AMD's processor, PyTorch uses AVX-512 on it (ATEN_CPU_CAPABILITY decides) and offers oneDNN's products."""
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
