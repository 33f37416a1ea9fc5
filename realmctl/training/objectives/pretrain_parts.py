"""The settings of the pre-training objective, and its micro-batches. Legend: B queries, N candidates, M masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.deviations import PretrainDeviation
from realmctl.models.inputs import TokenBatch
from realmctl.training.objectives.masking import MaskedQuery, Masking

Marginal = Literal["token", "sequence"]


@dataclass(frozen=True, kw_only=True)
class PretrainOptions:
    """The settings of `pretrain` that define the objective.

    precision: arithmetic of the searches; the training loop sets the precision of the loss.
    """

    batch_size: int
    candidates: int
    marginal: Marginal
    masking: Masking
    max_masks: int
    query_length: int
    seed: int
    null_document: bool = True
    exclude_own: bool = True
    official: tuple[PretrainDeviation, ...] = ()
    retriever_lr_multiplier: float = 1.0
    layer_decay: float = 1.0
    precision: str = "fp32"


@dataclass(frozen=True)
class PretrainMicroBatch:
    """A micro-batch: masked queries, the positions of their masks, the hidden wordpieces, and the candidates.

    position_BM, target_BM: int64. mask_BM: bool, False at unused slots. rows_BN: rows of blocks, -1 for the null document,
    -2 for no candidate.
    """

    queries: list[MaskedQuery]
    packed: TokenBatch
    position_BM: Tensor
    target_BM: Tensor
    mask_BM: Tensor
    rows_BN: NDArray[np.int64]
    normaliser: float


def micro_batch(
    drawn: list[MaskedQuery], packed: TokenBatch, rows_BN: NDArray[np.int64], normaliser: float
) -> PretrainMicroBatch:
    """Return the micro-batch of some masked queries.

    Args:
        drawn: The queries.
        packed: Their wordpieces.
        rows_BN: Their candidates.
        normaliser: What the loss is divided by: the number of hidden wordpieces, or of queries, of the whole batch.
    """
    shape = len(drawn), max(1, *(len(query.targets) for query in drawn))
    position_BM, target_BM = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    mask_BM = torch.zeros(shape, dtype=torch.bool)
    for row, query in enumerate(drawn):
        used = slice(len(query.targets))
        position_BM[row, used] = torch.from_numpy(query.places) + 1
        target_BM[row, used] = torch.from_numpy(query.targets)
        mask_BM[row, used] = True
    return PretrainMicroBatch(drawn, packed, position_BM, target_BM, mask_BM, rows_BN, normaliser)
