"""A queue of negatives from earlier steps, and the slowly moving encoder that makes them (MoCo; He et al., CVPR 2020, section 3.2; Contriever
uses it for retrieval, Izacard et al. 2022, section 3.2).

Legend: C blocks of a step, N vectors in the queue, D projection.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from realmctl.errors import ConfigError
from realmctl.models.retriever import Retriever


class MomentumQueue(nn.Module):
    """The blocks of a step are embedded by a copy of the retriever that gets no gradient. Its vectors are negatives of later steps.

    All of it is saved with a checkpoint. In the public code of Contriever a query sees the queue and its own block; here also the other
    blocks of its step.

    Args:
        retriever: What is trained. It must have one encoder for queries and blocks, since the blocks' side gets no gradient.
        size: Most vectors in the queue; the oldest leave first.
        momentum: Share of itself that the copy keeps at each step.

    Raises:
        ConfigError: The retriever has two encoders.
    """

    vector_ND: Tensor
    name_N: Tensor
    pushed: Tensor

    def __init__(self, retriever: Retriever, size: int, momentum: float) -> None:
        super().__init__()
        if retriever.towers != "shared":
            raise ConfigError(
                f"--queue {size}: only queries are trained then, so the retriever must have one encoder for both sides."
            )
        self.retriever = copy.deepcopy(retriever).requires_grad_(False)
        self.momentum = momentum
        self.register_buffer("vector_ND", torch.zeros(size, retriever.projection))
        self.register_buffer("name_N", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("pushed", torch.zeros((), dtype=torch.int64))

    def vectors(self) -> Tensor:
        """The vectors that are there, float32 [at most N, D]."""
        return self.vector_ND[: min(int(self.pushed), len(self.vector_ND))]

    def names(self) -> Tensor:
        """The names of their blocks, int64 [at most N]."""
        return self.name_N[: min(int(self.pushed), len(self.name_N))]

    @torch.no_grad()
    def advance(self, trained: Retriever, block_CD: Tensor, name_C: Tensor) -> None:
        """Move the copy towards the trained weights, and put the vectors of a step, with their names, in the place of the oldest."""
        for mine, its in zip(self.retriever.parameters(), trained.parameters(), strict=True):
            mine.lerp_(its, 1 - self.momentum)
        size = len(self.vector_ND)
        kept_CD = block_CD[-size:]
        first = int(self.pushed) + len(block_CD) - len(kept_CD)
        places = (first + torch.arange(len(kept_CD), device=kept_CD.device)) % size
        self.vector_ND[places], self.name_N[places] = kept_CD.float(), name_C[-size:].to(kept_CD.device)
        self.pushed += len(block_CD)
