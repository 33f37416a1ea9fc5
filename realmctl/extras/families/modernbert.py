"""ModernBERT (Warner et al. 2024): pre-norm layers with rotary positions and attention in windows, no segments, no pooler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers import ModernBertConfig, ModernBertForMaskedLM, ModernBertModel

from realmctl.extras.families.padded import Padded
from realmctl.models.bert.modules import Encoder


class ModernBert(Padded):
    """ModernBERT."""

    model_type = "modernbert"
    config, base, masked_lm = ModernBertConfig, ModernBertModel, ModernBertForMaskedLM
    head = ("head.", "decoder.")
    tied: ClassVar[Mapping[str, str]] = {"decoder.weight": "model.embeddings.tok_embeddings.weight"}
    rates = ("attention_dropout", "embedding_dropout", "mlp_dropout")
    has_pooler = False
    activation = "hidden_activation"

    def segments(self, config: Any) -> int:
        """Return 1: it knows no segments."""
        return 1

    def set_dropout(self, base: Encoder, rate: float) -> None:
        """Set the rates of the attention, which has no `nn.Dropout` where the rate was 0, and those of the configuration."""
        super().set_dropout(base, rate)
        for layer in base.layers:
            layer.attn.attention_dropout = rate
            layer.attn.out_drop = nn.Dropout(rate) if rate else nn.Identity()

    def words(self, base: Encoder) -> nn.Embedding:
        """Return the table of the wordpieces' embeddings."""
        table: nn.Embedding = base.embeddings.tok_embeddings
        return table

    def from_below(self, base: Encoder) -> list[nn.Module]:
        """Return the embeddings and the layers, in order."""
        return [base.embeddings, *base.layers]

    def head_layers(self, masked_lm: Encoder) -> tuple[nn.Linear, nn.LayerNorm]:
        """Return the dense layer and the layer norm before the decoder."""
        return masked_lm.head.dense, masked_lm.head.norm

    def transform(self, masked_lm: Encoder, state_XH: Tensor) -> Tensor:
        """Return what the decoder of the masked-language-model head reads, [..., H]."""
        transformed_XH: Tensor = masked_lm.head(state_XH)
        return transformed_XH

    def decoder(self, masked_lm: Encoder) -> nn.Linear:
        """Return the last layer of the masked-language-model head."""
        decoder: nn.Linear = masked_lm.decoder
        return decoder
