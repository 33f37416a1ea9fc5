"""How the states of a text's tokens become one vector. Rooms and packages offer others in `realmctl.poolings`.

A pooling is a function of states, float32 [B, L, H], and of the tokens that it reads, bool [B, L]. It returns [B, H]. The states are zeros at
padding. Several in one, written `cls+mean`, put their vectors behind each other.
Legend: B rows, L tokens, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from torch import Tensor

from realmctl.registry import Registry

PoolingFunction = Callable[[Tensor, Tensor], Tensor]
POOLINGS = Registry(
    "pooling",
    group="realmctl.poolings",
    core={name: f"{__name__}:{name}" for name in ("cls", "mean")},
)
MOST = 4
"""Most poolings in one."""


def cls(state_BLH: Tensor, pooled_BL: Tensor) -> Tensor:
    """Return the state of the first token that is read."""
    first_B11 = pooled_BL.int().argmax(1)[:, None, None]
    return state_BLH.gather(1, first_B11.expand(-1, 1, state_BLH.shape[-1]))[:, 0]


def mean(state_BLH: Tensor, pooled_BL: Tensor) -> Tensor:
    """Return the mean of the states of all tokens that are read, special tokens included, as sentence-transformers."""
    return (state_BLH * pooled_BL[..., None]).sum(1) / pooled_BL.sum(1, keepdim=True).clamp(min=1)


def poolings_of(name: str) -> list[PoolingFunction]:
    """Return the poolings that a name such as `mean` or `cls+mean` stands for. Raises ConfigError for one that is not known."""
    names = ["cls"] if name == "pooler" else name.split("+")[:MOST]
    return [POOLINGS.instance(each, FunctionType, like=mean) for each in names]
