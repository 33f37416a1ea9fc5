"""The head of masked language modelling that RoBERTa and MPNet have: `lm_head`."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.models.bert.modules import Encoder
from realmctl.models.families.family import Family


class LmHead(Family):
    """A family whose head is `lm_head`."""

    head = ("lm_head.",)

    def head_layers(self, masked_lm: Encoder) -> tuple[nn.Linear, nn.LayerNorm]:
        """Return the dense layer and the layer norm before the decoder, with a GELU between them."""
        return masked_lm.lm_head.dense, masked_lm.lm_head.layer_norm

    def transform(self, masked_lm: Encoder, state_XH: Tensor) -> Tensor:
        """Return what the decoder of the masked-language-model head reads, [..., H]."""
        dense, norm = self.head_layers(masked_lm)
        transformed_XH: Tensor = norm(F.gelu(dense(state_XH)))
        return transformed_XH

    def decoder(self, masked_lm: Encoder) -> nn.Linear:
        """Return the last layer of the masked-language-model head."""
        decoder: nn.Linear = masked_lm.lm_head.decoder
        return decoder
