"""MPNet (Song et al. 2020): BERT's layers with relative positions beside the absolute ones, and no segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from transformers import MPNetConfig, MPNetForMaskedLM, MPNetModel

from realmctl.extras.families.lm_head import LmHead
from realmctl.extras.families.padded import Padded
from realmctl.models.families.bert import BertNamed

PADDING = 1
"""transformers takes this id for padding, whatever config.json says. Positions begin behind it."""


class Mpnet(LmHead, BertNamed, Padded):
    """MPNet."""

    model_type = "mpnet"
    config, base, masked_lm = MPNetConfig, MPNetModel, MPNetForMaskedLM
    attention = "eager"
    tied: ClassVar[Mapping[str, str]] = {
        "lm_head.decoder.weight": "mpnet.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def first_position(self, config: Any) -> int:
        """Return the position of the first token: that behind padding's."""
        return PADDING + 1

    def segments(self, config: Any) -> int:
        """Return 1: it knows no segments."""
        return 1

    def check(self, config: Any) -> None:
        """Raise ValueError for another id of padding than the one that transformers takes."""
        if config.pad_token_id != PADDING:
            raise ValueError(f"pad_token_id is {config.pad_token_id}, and transformers takes {PADDING} for an MPNet")
        super().check(config)
