"""What every tower begins with: an encoder, and one vector of its states.

Legend: B rows, L tokens, H hidden, D width of the embeddings.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from realmctl.models.bert.modules import Encoder, draw_weights
from realmctl.models.encoder import cls_state, hidden_states
from realmctl.models.families.known import family_of
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import full_precision
from realmctl.models.retriever_settings import Pooling
from realmctl.models.towers.poolings import poolings_of


class PooledBert(nn.Module):
    """Base class of the towers: an encoder and pooling. A tower adds what follows.

    Args:
        bert: The encoder. The tower keeps this object and adds or removes its pooler.
        pooling: How token states become one vector; see `realmctl.models.retriever`.
    """

    def __init__(self, bert: Encoder, pooling: Pooling) -> None:
        super().__init__()
        self.bert = bert
        self.pooling: Pooling = pooling
        self.poolings = poolings_of(pooling)
        self.pooled_width = int(bert.config.hidden_size) * len(self.poolings)

    @property
    @abstractmethod
    def width(self) -> int:
        """Width D of the embeddings."""

    @abstractmethod
    def project(self, pooled_BH: Tensor) -> Tensor:
        """Return the embeddings of what `pool` returned, float32 [B, D]."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return what retriever.json records of the tower besides pooling and width."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the BertModel, which AutoModel loads, and what follows it."""

    def forward(self, packed: TokenBatch) -> Tensor:
        return self.embed(packed)

    def embed(self, packed: TokenBatch) -> Tensor:
        """Return the embeddings of the rows, float32 [B, D]."""
        return self.project(self.pool(packed))

    def pool(self, packed: TokenBatch) -> Tensor:
        """Return one vector for each row, float32 [B, H], H being `pooled_width`.

        With `cls` and `pooler` the last layer runs at the [CLS] position only.
        """
        if self.pooling in ("cls", "pooler") and not packed.unpooled:
            return self._pooled(cls_state(self.bert, packed))
        return self.pool_states(hidden_states(self.bert, packed), packed)

    def pool_states(self, state_BLH: Tensor, packed: TokenBatch) -> Tensor:
        """Return one vector for each row of last-layer states, float32 [B, H]. The states are zeros at padding."""
        state_BLH, pooled_BL = state_BLH.float(), packed.pooled_BL
        return self._pooled(torch.cat([pool(state_BLH, pooled_BL) for pool in self.poolings], -1))

    def _pooled(self, state_BH: Tensor) -> Tensor:
        state_BH = state_BH.float()
        if self.pooling == "pooler":
            with full_precision(state_BH.device):
                state_BH = self.bert.pooler(state_BH[:, None])
        return state_BH

    def fit_pooler(self) -> None:
        """Give the BERT a pooler if `pooling` needs one, with random weights if it has none. Remove it otherwise."""
        if self.pooling != "pooler":
            self.bert.pooler = None
        elif getattr(self.bert, "pooler", None) is None:
            self.bert.pooler = family_of(self.bert).new_pooler(self.bert.config)
            draw_weights(self.bert.pooler, self.bert.config)
        self.requires_grad_(True)
