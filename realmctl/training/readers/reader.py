"""The seam between pre-training and its reader: hidden text and candidates in, log p(y|z,x) out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer
from realmctl.models.inputs import QueryBatch
from realmctl.spans.query import Query
from realmctl.training.objective import Sums


class PretrainReader(ABC):
    """A reader of pre-training. Legend: B queries, N candidates, M hidden tokens.

    module: What computes it, and is trained if the reader is. chance, chance_is_exact: The loss of guessing, as in `Objective`.
    lr_multipliers: {module: factor} for modules whose learning rate differs from the schedule's.
    """

    module: nn.Module
    chance: float = 0.0
    chance_is_exact: bool = False
    lr_multipliers: Mapping[nn.Module, float] = MappingProxyType({})

    @abstractmethod
    def hidden(self, query: Query) -> int:
        """Number of the reader's tokens that are hidden in a query and asked for."""

    @abstractmethod
    def read(self, asked: QueryBatch, rows_BN: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return log p(y_m|z,x) of each hidden token with each block, float32 [B, N, M], and the slots with a token, bool [B, M].

        rows_BN: rows of blocks. A negative row is the empty document. Gradients reach the module if its parameters take some.
        """

    @abstractmethod
    def save(self, out: Writer) -> None:
        """Write the trained reader as a part of the model."""

    def sums(self) -> Sums:
        """Return metrics of what was read since the last call."""
        return {}
