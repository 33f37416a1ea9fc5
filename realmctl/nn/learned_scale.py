"""One learned number: how much the scores of a frozen ranker count beside those of a reader that learns."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Scale(nn.Module):
    """score -> exp(w) score, with one trained number w.

    `pace`: the optimizer steps this many times as fast here. Adam moves a number by at most its rate, and the 3e-4 of
    a run of 300 steps could not halve or double the scale; with 100 it crosses that in some twenty steps.
    """

    pace = 100.0

    def __init__(self, start: float = 1.0) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(start)))

    def forward(self, score: Tensor) -> Tensor:
        """The scaled scores, float32, in the shape given."""
        return self.log_scale.exp() * score.float()

    @property
    def value(self) -> float:
        """exp(w)."""
        return math.exp(float(self.log_scale.detach()))
