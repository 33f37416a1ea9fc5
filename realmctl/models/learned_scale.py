"""A learned scale. It balances the scores of a frozen ranker (BM25) and of a trained reader."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class LearnedScale(nn.Module):
    """The map score -> exp(w) * score with one trained parameter w.

    `LR_MULTIPLIER` is the factor of its learning rate. Adam moves a number by at most the learning rate, and 300 steps
    at 3e-4 cannot halve or double the scale; at 100 times that rate about twenty steps do.
    """

    LR_MULTIPLIER = 100.0

    def __init__(self, start: float = 1.0) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(start)))

    def forward(self, score: Tensor) -> Tensor:
        """Return the scaled scores, float32, in the shape of `score`."""
        return self.log_scale.exp() * score.float()

    @property
    def value(self) -> float:
        """The current scale, exp(w)."""
        return math.exp(float(self.log_scale.detach()))
