"""The tower of an imported encoder: e(x) = sqrt(S) head(pool(BERT(x))).

The head is what the encoder came with: dense layers, layer norms, normalisation, or nothing. S is the scale, the inverse
of the temperature of the encoder's training: the inner product of two embeddings is S times the encoder's own. A softmax
over cosines from -1 to 1 is almost flat, so normalised encoders need a scale. Training does not change it.
Legend: B rows, D width of the embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from realmctl.errors import InputError
from realmctl.models.bert.files import load_bert, save_bert
from realmctl.models.bert.modules import Encoder
from realmctl.models.precision import full_precision
from realmctl.models.retriever_settings import Pooling
from realmctl.models.towers.head_steps import HeadStep, head_of, steps_of
from realmctl.models.towers.pooled_bert import PooledBert
from realmctl.models.towers.poolings import poolings_of
from realmctl.models.weights import load_into, load_tensors, save_tensors

HEAD_FILE = "projection.safetensors"


class SentenceTower(PooledBert):
    """BERT, pooling, and the head of an imported encoder.

    Args:
        bert: The encoder. The tower keeps this object and adds or removes its pooler.
        pooling: How token states become one vector.
        steps: The head after pooling; weights are random until they are loaded.
        scale: Scale S of the inner products.
    """

    scale: Tensor
    """float32 []; a buffer, so that it is saved with the weights and not trained."""

    def __init__(self, bert: Encoder, pooling: Pooling, steps: Sequence[HeadStep], scale: float = 1.0) -> None:
        super().__init__(bert, pooling)
        self.steps = tuple(steps)
        self.head = head_of(self.pooled_width, steps)
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.fit_pooler()

    @property
    def width(self) -> int:
        """Width D of the embeddings."""
        return self.steps[-1].width if self.steps else self.pooled_width

    def project(self, pooled_BH: Tensor) -> Tensor:
        """Return the embeddings of what `pool` returned, float32 [B, D]."""
        with full_precision(pooled_BH.device):
            embedding_BD: Tensor = self.head(pooled_BH) * self.scale.sqrt()
        return embedding_BD

    @torch.no_grad()
    def set_projection(self, weight_DH: Tensor, bias_D: Tensor) -> None:
        """Replace the weights of a head that is one linear layer. The shapes must not change."""
        [module] = self.head
        assert isinstance(module, nn.Sequential) and isinstance(module[0], nn.Linear)
        module[0].weight.copy_(weight_DH)
        module[0].bias.copy_(bias_D)

    def set_scale(self, scale: float) -> None:
        """Set the scale S of the inner products."""
        self.scale.fill_(scale)

    def settings(self) -> dict[str, Any]:
        """Return the steps of the head."""
        return {"head": [asdict(step) for step in self.steps]}

    def save(self, folder: Path) -> None:
        """Write the Encoder, which AutoModel loads, and the head with the scale beside it."""
        save_bert(self.bert, folder)
        tensors = {f"head.{name}": tensor for name, tensor in self.head.state_dict().items()}
        save_tensors({**tensors, "scale": self.scale}, folder / HEAD_FILE)

    @classmethod
    def load(cls, folder: Path, pooling: Pooling, described: object) -> SentenceTower:
        """Read what `save` wrote. Raises InputError that names a tensor which does not fit."""
        bert = load_bert(folder, pooler=pooling == "pooler")
        try:
            tower = cls(bert, pooling, steps_of(described, int(bert.config.hidden_size) * len(poolings_of(pooling))))
        except ValueError as error:
            raise InputError(f"{folder}: {error}. The retriever.json of the folder above was changed.") from None
        rest = {f"bert.{name}": tensor for name, tensor in bert.state_dict().items()}
        load_into(tower, {**rest, **load_tensors(folder / HEAD_FILE)}, folder)
        return tower.eval()
