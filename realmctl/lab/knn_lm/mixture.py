"""The kNN-LM's distribution: a softmax over the nearest stored states, mixed with the language model's own.

Source: Khandelwal et al. 2020 (arXiv 1911.00172), equations 1 to 3. The distance is the squared Euclidean one.
An index of inner products finds the nearest states: with a key k stored as (k, -|k|^2 / 2) and a query q searched as (q, 1),
the inner product is (|q|^2 - |q - k|^2) / 2, so the largest product belongs to the nearest key.
Any constant may be added to the last column of all keys.
Legend: M states, K neighbours, H width, V vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]


def stored_keys(key_MH: Floats) -> Floats:
    """Return the rows of the datastore's index, float32 [M, H + 1]."""
    return np.concatenate([key_MH, -0.5 * np.square(key_MH).sum(1, keepdims=True)], axis=1).astype(np.float32)


def searched_queries(query_MH: Floats) -> Floats:
    """Return the vectors to search that index with, float32 [M, H + 1]."""
    return np.concatenate([query_MH, np.ones((len(query_MH), 1), np.float32)], axis=1).astype(np.float32)


def neighbour_distribution(
    query_MH: Tensor, key_MKH: Tensor, wordpiece_MK: Tensor, found_MK: Tensor, temperature: float, vocabulary: int
) -> Tensor:
    """Return p_kNN, float32 [M, V]: each neighbour gives exp(-|q - k|^2 / temperature) to its wordpiece, then normalised.

    A row without any neighbour (found_MK is False everywhere) is 0.
    """
    distance_MK = (query_MH[:, None] - key_MKH).float().square().sum(-1)
    logit_MK = (-distance_MK / temperature).masked_fill(~found_MK, -torch.inf)
    weight_MK = logit_MK.softmax(-1).nan_to_num(0.0)
    return weight_MK.new_zeros(len(query_MH), vocabulary).scatter_add_(1, wordpiece_MK, weight_MK)


def mixed(log_prob_MV: Tensor, neighbour_MV: Tensor, share: float) -> Tensor:
    """Return log(share * p_kNN + (1 - share) * p_LM), float32 [M, V]. A row without neighbours keeps p_LM."""
    share_M1 = share * (neighbour_MV.sum(-1, keepdim=True) > 0)
    return (share_M1 * neighbour_MV + (1 - share_M1) * log_prob_MV.exp()).log()
