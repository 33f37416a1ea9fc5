"""The activations that encoders name in config.json, as transformers computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

_gelu_tanh = partial(F.gelu, approximate="tanh")


def _quick_gelu(state: Tensor) -> Tensor:
    return state * torch.sigmoid(1.702 * state)


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_python": F.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_fast": _gelu_tanh,
    "gelu_accurate": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "quick_gelu": _quick_gelu,
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
    "mish": F.mish,
    "tanh": torch.tanh,
}
"""{name in config.json: function}. Formulas that differ in rounding alone share a function."""
