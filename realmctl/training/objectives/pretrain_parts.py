"""The settings of the pre-training objective, and its micro-batches. Legend: B queries, N candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from realmctl.deviations import PretrainDeviation
from realmctl.models.inputs import QueryBatch
from realmctl.spans.tagged_queries import Masking

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
    seed: int
    null_document: bool = True
    exclude_own: bool = True
    official: tuple[PretrainDeviation, ...] = ()
    retriever_lr_multiplier: float = 1.0
    layer_decay: float = 1.0
    precision: str = "fp32"


@dataclass(frozen=True)
class PretrainMicroBatch:
    """Queries and their candidates.

    rows_BN: rows of blocks, int64, -1 for the null document, -2 for no candidate. normaliser: what the loss is divided by, the
    number of hidden wordpieces, or of queries, of the whole batch.
    """

    asked: QueryBatch
    rows_BN: NDArray[np.int64]
    normaliser: float
