"""Families whose base model names its parts as BERT's does.

Legend: P positions, H hidden.
"""

from __future__ import annotations

from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.bert.modeling_bert import BertPooler

from realmctl.models.families.family import Family


class BertNamed(Family):
    """A family whose base model has `embeddings` and `encoder.layer` as BERT's, and a tanh pooler."""

    def first_position(self, config: PretrainedConfig) -> int:
        """Return the position of the first token."""
        return 0

    def positions(self, config: PretrainedConfig) -> int:
        """Return the most tokens of an input."""
        return int(config.max_position_embeddings) - self.first_position(config)

    def words(self, base: PreTrainedModel) -> nn.Embedding:
        """Return the table of the wordpieces' embeddings."""
        table: nn.Embedding = base.embeddings.word_embeddings
        return table

    def from_below(self, base: PreTrainedModel) -> list[nn.Module]:
        """Return the embeddings and the layers, in order."""
        return [base.embeddings, *base.encoder.layer]

    def new_pooler(self, config: PretrainedConfig) -> nn.Module:
        """Return a tanh pooler with random weights."""
        pooler: nn.Module = BertPooler(config)
        return pooler

    def position_states(self, base: PreTrainedModel, length: int) -> Tensor:
        """Return the embeddings of the first positions of a text, [length, H]."""
        first = self.first_position(base.config)
        weight_PH: Tensor = base.embeddings.position_embeddings.weight
        return weight_PH[first : first + length]
