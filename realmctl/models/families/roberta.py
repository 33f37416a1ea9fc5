"""RoBERTa (Liu et al. 2019), XLM-R (Conneau et al. 2020) and CamemBERT (Martin et al. 2020).

They differ from BERT in three points. The first token has the position behind that of padding, so that 514 rows of positions are 512
tokens. Most have one segment. The head of masked language modelling is `lm_head`.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    CamembertConfig,
    CamembertForMaskedLM,
    CamembertModel,
    PretrainedConfig,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaModel,
)

from realmctl.models.families.bert_shaped import BertShaped

TIED = {
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}


class Roberta(BertShaped):
    """RoBERTa."""

    model_type = "roberta"
    config, base, masked_lm = RobertaConfig, RobertaModel, RobertaForMaskedLM
    head = ("lm_head.",)
    tied = TIED

    def first_position(self, config: PretrainedConfig) -> int:
        """Return the position of the first token: that behind padding's."""
        return int(config.pad_token_id or 0) + 1

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
        """Raise ValueError without an id of padding, behind which the positions begin."""
        if config.pad_token_id is None:
            raise ValueError("pad_token_id is missing, and the positions begin behind it")
        super().check(config)


class XlmRoberta(Roberta):
    """XLM-R."""

    model_type = "xlm-roberta"
    config, base, masked_lm = XLMRobertaConfig, XLMRobertaModel, XLMRobertaForMaskedLM


class Camembert(Roberta):
    """CamemBERT."""

    model_type = "camembert"
    config, base, masked_lm = CamembertConfig, CamembertModel, CamembertForMaskedLM
