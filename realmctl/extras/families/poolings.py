"""Poolings beside the mean and [CLS], as sentence-transformers computes them (sentence_transformer/modules/pooling.py).

Legend: B rows, L tokens, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor


def maximum(state_BLH: Tensor, pooled_BL: Tensor) -> Tensor:
    """Return the largest number of each dimension; zeros where nothing is read."""
    found_BH = state_BLH.masked_fill(~pooled_BL[..., None], -torch.inf).amax(1)
    return torch.where(pooled_BL.any(1, keepdim=True), found_BH, 0.0)


def last_token(state_BLH: Tensor, pooled_BL: Tensor) -> Tensor:
    """Return the state of the last token that is read, on whichever side a tokenizer pads; zeros where nothing is read."""
    place_B = (pooled_BL * torch.arange(1, pooled_BL.shape[1] + 1, device=pooled_BL.device)).amax(1)
    found_BH = state_BLH.gather(1, (place_B - 1).clamp(min=0)[:, None, None].expand(-1, 1, state_BLH.shape[-1]))[:, 0]
    return torch.where(place_B[:, None] > 0, found_BH, 0.0)


def weighted_mean(state_BLH: Tensor, pooled_BL: Tensor) -> Tensor:
    """Return the mean in which a token weighs as much as its place, the first 1 (SGPT, Muennighoff 2022)."""
    weight_BL = pooled_BL * torch.arange(1, pooled_BL.shape[1] + 1, device=pooled_BL.device, dtype=state_BLH.dtype)
    return (state_BLH * weight_BL[..., None]).sum(1) / weight_BL.sum(1, keepdim=True).clamp(min=1)


def mean_of_root(state_BLH: Tensor, pooled_BL: Tensor) -> Tensor:
    """Return the sum of the states, divided by the square root of their number."""
    return (state_BLH * pooled_BL[..., None]).sum(1) / pooled_BL.sum(1, keepdim=True).clamp(min=1).sqrt()
