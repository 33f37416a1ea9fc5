"""BERT's modules: they hold its weights, under transformers' names, and start as transformers' do.

`layers.py` computes with them, and with the modules of other families of BERT's shape. A seed gives the weights that it gives in
transformers: the constructors of PyTorch draw first, and `draw_weights` replaces what they drew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from realmctl.models.bert.config import BertConfig


class Encoder(nn.Module):
    """What stages use of an encoder, or of the masked language model around one (`base_model`).

    transformers' PreTrainedModel has the same attributes, and stands for it in families whose modules are transformers'.
    """

    base_model_prefix: ClassVar[str]
    config: Any
    pooler: Any

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def base_model(self) -> Encoder:
        """The encoder without a head."""
        encoder: Encoder = getattr(self, self.base_model_prefix, self)
        return encoder


class BertModel(Encoder):
    """Embeddings and layers, and the tanh pooler if there is one."""

    base_model_prefix = "bert"

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))
        self.pooler = BertPooler(config) if add_pooling_layer else None
        draw_weights(self, config)


class BertForMaskedLM(Encoder):
    """A BERT with its masked-language-model head, whose decoder is the table of embeddings."""

    base_model_prefix = "bert"

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.bert = BertModel(config, add_pooling_layer=False)
        self.cls = nn.Module()
        self.cls.predictions = _Head(config)
        draw_weights(self.cls, config)
        self.tie_weights()

    def tie_weights(self) -> None:
        """Make the decoder's weights those of the embeddings and of the head's bias."""
        head: Any = self.cls.predictions
        head.decoder.weight, head.decoder.bias = self.bert.embeddings.word_embeddings.weight, head.bias


class BertLayer(nn.Module):
    """The weights of one layer."""

    gradient_checkpointing = False
    """Whether the backward pass computes the layer again."""
    attention: Any

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.attention = nn.Module()
        self.attention.self = _SelfAttention(config)
        self.attention.output = _Output(width, config)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(width, inner)
        self.output = _Output(inner, config)


class BertPooler(nn.Module):
    """tanh(W h + b) of the state at the first token."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, state_BLH: Tensor) -> Tensor:
        return torch.tanh(self.dense(state_BLH[:, 0]))


class _Embeddings(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)


class _SelfAttention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.config, self.num_attention_heads = config, config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)


class _Output(nn.Module):
    def __init__(self, inputs: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)


class _Head(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.transform = nn.Module()
        self.transform.dense = nn.Linear(width, width)
        self.transform.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(width, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))


@torch.no_grad()
def draw_weights(module: nn.Module, config: Any) -> None:
    """Draw matrices and embeddings from a normal distribution with the deviation `initializer_range`; biases are zeros.

    config: The configuration of an encoder of any family.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=config.initializer_range)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding) and part.padding_idx is not None:
            nn.init.zeros_(part.weight[part.padding_idx])
