"""RoBERTa (Liu et al. 2019), XLM-R (Conneau et al. 2020) and CamemBERT (Martin et al. 2020).

They differ from BERT in three points. The first token has the position behind that of padding, so that 514 rows of positions are 512
tokens. Most have one segment. The head of masked language modelling is `lm_head`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from transformers import (
    CamembertConfig,
    CamembertForMaskedLM,
    CamembertModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaModel,
)

from realmctl.extras.families.lm_head import LmHead
from realmctl.models.families.bert import BertShaped


class Roberta(LmHead, BertShaped):
    """RoBERTa."""

    model_type = "roberta"
    config, base, masked_lm = RobertaConfig, RobertaModel, RobertaForMaskedLM
    tied: ClassVar[Mapping[str, str]] = {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def first_position(self, config: Any) -> int:
        """Return the position of the first token: that behind padding's."""
        return int(config.pad_token_id or 0) + 1

    def check(self, config: Any) -> None:
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
