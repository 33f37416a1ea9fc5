"""BERT (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, BertModel, PreTrainedModel

from realmctl.models.families.bert_shaped import BertShaped


class Bert(BertShaped):
    """BERT."""

    model_type = "bert"
    config, base, masked_lm = BertConfig, BertModel, BertForMaskedLM
    head = ("cls.predictions.",)
    tied: ClassVar[Mapping[str, str]] = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def head_layers(self, masked_lm: PreTrainedModel) -> tuple[nn.Linear, nn.LayerNorm]:
        """Return the dense layer and the layer norm before the decoder."""
        transform = masked_lm.cls.predictions.transform
        return transform.dense, transform.LayerNorm

    def transform(self, masked_lm: PreTrainedModel, state_XH: Tensor) -> Tensor:
        """Return what the decoder of the masked-language-model head reads, [..., H]."""
        transformed_XH: Tensor = masked_lm.cls.predictions.transform(state_XH)
        return transformed_XH

    def decoder(self, masked_lm: PreTrainedModel) -> nn.Linear:
        """Return the last layer of the masked-language-model head."""
        decoder: nn.Linear = masked_lm.cls.predictions.decoder
        return decoder
