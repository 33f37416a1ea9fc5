"""BERT (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from realmctl.models.bert.activations import ACTIVATIONS
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.modules import BertForMaskedLM, BertModel, Encoder
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

    def config_of(self, fields: Mapping[str, Any]) -> BertConfig:
        """Return the configuration in the fields of a config.json. Raises ValueError for a field of a wrong type."""
        return BertConfig.from_dict(fields)

    def head_layers(self, masked_lm: Encoder) -> tuple[nn.Linear, nn.LayerNorm]:
        """Return the dense layer and the layer norm before the decoder."""
        transform = masked_lm.cls.predictions.transform
        return transform.dense, transform.LayerNorm

    def transform(self, masked_lm: Encoder, state_XH: Tensor) -> Tensor:
        """Return what the decoder of the masked-language-model head reads, [..., H]."""
        dense, norm = self.head_layers(masked_lm)
        transformed_XH: Tensor = norm(ACTIVATIONS[masked_lm.config.hidden_act](dense(state_XH)))
        return transformed_XH

    def decoder(self, masked_lm: Encoder) -> nn.Linear:
        """Return the last layer of the masked-language-model head."""
        decoder: nn.Linear = masked_lm.cls.predictions.decoder
        return decoder
