"""The steps after pooling in an imported tower: dense layers, layer norms, normalisation to length 1, the first numbers of each vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import torch.nn.functional as F
from torch import Tensor, nn

HeadStepKind = Literal["dense", "layer-norm", "normalize", "truncate"]
Activation = Literal["identity", "tanh", "relu", "gelu", "silu", "sigmoid"]
ACTIVATIONS: dict[Activation, type[nn.Module]] = {
    "identity": nn.Identity,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "sigmoid": nn.Sigmoid,
}
MAX_STEPS, MAX_WIDTH = 16, 65_536


@dataclass(frozen=True)
class HeadStep:
    """A step of the head. width: width of its output. bias, activation: of a dense layer."""

    kind: HeadStepKind
    width: int
    bias: bool = True
    activation: Activation = "identity"


class UnitLength(nn.Module):
    """Divide each vector by its length, as sentence-transformers' Normalize."""

    def forward(self, vector_BD: Tensor) -> Tensor:
        return F.normalize(vector_BD, dim=-1)


class FirstNumbers(nn.Module):
    """Keep the first numbers of each vector, as sentence-transformers' `truncate_dim` of Matryoshka models."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, vector_BD: Tensor) -> Tensor:
        return vector_BD[..., : self.width]


def head_of(hidden: int, steps: Sequence[HeadStep]) -> nn.Sequential:
    """Return the modules of the steps after pooled states of width `hidden`, with random weights."""
    widths = [hidden, *(step.width for step in steps)]
    return nn.Sequential(*(_module(step, width) for step, (width, _) in zip(steps, pairwise(widths), strict=True)))


def _module(step: HeadStep, width: int) -> nn.Module:
    if step.kind == "dense":
        dense = nn.Linear(width, step.width, bias=step.bias)
        return nn.Sequential(dense, ACTIVATIONS[step.activation]())
    if step.kind == "truncate":
        return FirstNumbers(step.width)
    return nn.LayerNorm(width) if step.kind == "layer-norm" else UnitLength()


def steps_of(described: object, hidden: int | None = None) -> tuple[HeadStep, ...]:
    """Return the steps that `dataclasses.asdict` described, read from JSON.

    Raises ValueError for anything else, and for a step after which the width changes though its kind does not change it.
    """
    if not isinstance(described, list) or len(described) > MAX_STEPS:
        raise ValueError(f"the head is not a list of at most {MAX_STEPS} steps")
    try:
        steps = tuple(HeadStep(**each) for each in described)
    except TypeError as error:
        raise ValueError(f"a step of the head is malformed ({error})") from None
    for before, step in zip((None, *steps), steps, strict=False):
        width = hidden if before is None else before.width
        if step.kind not in get_args(HeadStepKind) or step.activation not in ACTIVATIONS or type(step.bias) is not bool:
            raise ValueError(f"a step of the head is unknown: {str(step)[:120]}")
        if type(step.width) is not int or not 1 <= step.width <= MAX_WIDTH:
            raise ValueError(f"the width of a step of the head is {str(step.width)[:40]}")
        if step.kind == "truncate" and width is not None and step.width > width:
            raise ValueError(f"{step.width} numbers are to be kept of vectors of {width}")
        if step.kind not in ("dense", "truncate") and width not in (None, step.width):
            raise ValueError(f"a step of the head of kind {step.kind} changes the width from {width} to {step.width}")
    return steps
