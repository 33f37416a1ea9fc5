"""MPNet (Song et al. 2020): BERT's layers with relative positions beside the absolute ones, and no segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import MPNetConfig, MPNetForMaskedLM, MPNetModel, PretrainedConfig, PreTrainedModel
from transformers.models.bert.modeling_bert import BertPooler

from realmctl.models.families.padded import Padded

PADDING = 1
"""transformers takes this id for padding, whatever config.json says. Positions begin behind it."""


class Mpnet(Padded):
    """MPNet."""

    model_type = "mpnet"
    config, base, masked_lm = MPNetConfig, MPNetModel, MPNetForMaskedLM
    attention = "eager"
    head = ("lm_head.",)
    tied: ClassVar[Mapping[str, str]] = {
        "lm_head.decoder.weight": "mpnet.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def positions(self, config: PretrainedConfig) -> int:
        """Return the most tokens of an input."""
        return int(config.max_position_embeddings) - PADDING - 1

    def segments(self, config: PretrainedConfig) -> int:
        """Return 1: it knows no segments."""
        return 1

    def new_pooler(self, config: PretrainedConfig) -> nn.Module:
        """Return a tanh pooler with random weights."""
        pooler: nn.Module = BertPooler(config)
        return pooler

    def words(self, base: PreTrainedModel) -> nn.Embedding:
        """Return the table of the wordpieces' embeddings."""
        table: nn.Embedding = base.embeddings.word_embeddings
        return table

    def from_below(self, base: PreTrainedModel) -> list[nn.Module]:
        """Return the embeddings and the layers, in order."""
        return [base.embeddings, *base.encoder.layer]

    def position_states(self, base: PreTrainedModel, length: int) -> Tensor:
        """Return the embeddings of the first positions of a text, [length, H]."""
        weight_PH: Tensor = base.embeddings.position_embeddings.weight
        return weight_PH[PADDING + 1 : PADDING + 1 + length]

    def head_layers(self, masked_lm: PreTrainedModel) -> tuple[nn.Linear, nn.LayerNorm]:
        """Return the dense layer and the layer norm before the decoder, with a GELU between them."""
        return masked_lm.lm_head.dense, masked_lm.lm_head.layer_norm

    def transform(self, masked_lm: PreTrainedModel, state_XH: Tensor) -> Tensor:
        """Return what the decoder of the masked-language-model head reads, [..., H]."""
        dense, norm = self.head_layers(masked_lm)
        transformed_XH: Tensor = norm(F.gelu(dense(state_XH)))
        return transformed_XH

    def decoder(self, masked_lm: PreTrainedModel) -> nn.Linear:
        """Return the last layer of the masked-language-model head."""
        decoder: nn.Linear = masked_lm.lm_head.decoder
        return decoder

    def check(self, config: PretrainedConfig) -> None:
        """Raise ValueError for another id of padding than the one that transformers takes."""
        if config.pad_token_id != PADDING:
            raise ValueError(f"pad_token_id is {config.pad_token_id}, and transformers takes {PADDING} for an MPNet")
        super().check(config)
