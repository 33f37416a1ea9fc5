"""BERT (Devlin et al. 2019), and what families with its layers share: only real tokens are computed, and the last layer only at positions that are read.

The weights are in modules with the names of BERT's (`encoder.layer`, `attention.self.query`).
Legend: B rows, L tokens of the longest row, T real tokens of the batch, P positions read in each row, H hidden, X anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from realmctl.models.bert.activations import ACTIVATIONS
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.layers import run_layer
from realmctl.models.bert.modules import BertForMaskedLM, BertModel, BertPooler, Encoder
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.evaluating import computed_again
from realmctl.models.families.family import Family
from realmctl.models.inputs import TokenBatch


class BertNamed(Family):
    """A family whose base model has `embeddings` and `encoder.layer` as BERT's, and a tanh pooler."""

    def first_position(self, config: Any) -> int:
        """Return the position of the first token."""
        return 0

    def positions(self, config: Any) -> int:
        """Return the most tokens of an input."""
        return int(config.max_position_embeddings) - self.first_position(config)

    def words(self, base: Encoder) -> nn.Embedding:
        """Return the table of the wordpieces' embeddings."""
        table: nn.Embedding = base.embeddings.word_embeddings
        return table

    def from_below(self, base: Encoder) -> list[nn.Module]:
        """Return the embeddings and the layers, in order."""
        return [base.embeddings, *base.encoder.layer]

    def new_pooler(self, config: Any) -> nn.Module:
        """Return a tanh pooler with random weights."""
        return BertPooler(config)

    def position_states(self, base: Encoder, length: int) -> Tensor:
        """Return the embeddings of the first positions of a text, [length, H]."""
        first = self.first_position(base.config)
        weight_PH: Tensor = base.embeddings.position_embeddings.weight
        return weight_PH[first : first + length]


class BertShaped(BertNamed):
    """A family whose embeddings and layers are BERT's."""

    def layer_states(self, base: Encoder, packed: TokenBatch, layers: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Return the states after the given layers (0 = the embeddings), each [B, L, H]; zeros at padding."""
        rows = TokenLayout(packed)
        states = [self._embed(base, packed, rows)]
        for layer in base.encoder.layer[: max(layers)]:
            states.append(_run(layer, states[-1], rows))
        return tuple(rows.pad(states[layer]) for layer in layers)

    def states_at(self, base: Encoder, packed: TokenBatch, position_BP: Tensor) -> Tensor:
        """Return the output at some positions of each row, [B, P, H]. The last layer computes only these."""
        rows = TokenLayout(packed)
        state_TH = self._embed(base, packed, rows)
        for layer in base.encoder.layer[:-1]:
            state_TH = _run(layer, state_TH, rows)
        return _run(base.encoder.layer[-1], state_TH, rows, position_BP)

    def _embed(self, base: Encoder, packed: TokenBatch, rows: TokenLayout) -> Tensor:
        length, embeddings = packed.ids_BL.shape[1], base.embeddings
        self.require_positions(base.config, length, "Lengths of the inputs")
        first = self.first_position(base.config)
        position_BL = torch.arange(first, first + length, device=packed.ids_BL.device).expand_as(packed.ids_BL)
        segments_BL = packed.segments_BL if self.segments(base.config) > 1 else torch.zeros_like(packed.segments_BL)
        state_TH = embeddings.word_embeddings(rows.pack(packed.ids_BL))
        state_TH = state_TH + embeddings.token_type_embeddings(rows.pack(segments_BL))
        state_TH = state_TH + embeddings.position_embeddings(rows.pack(position_BL))
        embedding_TH: Tensor = embeddings.dropout(embeddings.LayerNorm(state_TH))
        return embedding_TH


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


def _run(layer: Any, state_TH: Tensor, rows: TokenLayout, position_BP: Tensor | None = None) -> Tensor:
    """Run the layer. With its `gradient_checkpointing` the backward pass computes it again to save memory."""
    if layer.gradient_checkpointing and layer.training:
        return computed_again(run_layer, layer, state_TH, rows, position_BP)
    return run_layer(layer, state_TH, rows, position_BP)
