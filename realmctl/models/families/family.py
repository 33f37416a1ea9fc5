"""What the stages need of an encoder, whatever its family.

The weights are in modules: a base model such as `BertModel`, and a masked language model such as `BertForMaskedLM` around it
(`masked_lm.base_model`). BERT's are in `bert/modules.py`, those of other families are transformers'. A family says how their states are
computed and where their parts are. Families that share the layers of BERT share its fast path (`bert.py`); others run
transformers' module over padded rows (`padded.py`).
Legend: B rows, L tokens of the longest row, P positions read in each row, H hidden, V vocabulary, X anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from realmctl.errors import ConfigError
from realmctl.models.bert.limits import weights_of
from realmctl.models.bert.modules import Encoder
from realmctl.models.inputs import TokenBatch


class Family(ABC):
    """A family of encoders.

    Attributes:
        model_type: `model_type` of config.json.
        config, base, masked_lm: the classes of its configuration and its modules.
        head: how the names of the tensors of the masked-language-model head begin.
        tied: {name of a tensor of the masked language model: name of the tensor that it is}. A file holds each pair once or twice.
        rates: the names of the dropout rates in config.json.
        has_pooler: whether the base model has a tanh pooler over the first token.
        activation: the name of the activation of the layers in config.json; empty for layers without one.
        attention: transformers' name of the attention that its classes compute; config.json does not choose it.
        framed: whether special tokens stand around a text.
    """

    model_type: ClassVar[str]
    config: ClassVar[type[Any]]
    base: ClassVar[type[Any]]
    masked_lm: ClassVar[type[Any]]
    head: ClassVar[tuple[str, ...]]
    tied: ClassVar[Mapping[str, str]]
    rates: ClassVar[tuple[str, ...]] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    has_pooler: ClassVar[bool] = True
    activation: ClassVar[str] = "hidden_act"
    attention: ClassVar[str] = "sdpa"
    framed: ClassVar[bool] = True

    def config_of(self, fields: Mapping[str, Any]) -> Any:
        """Return the configuration in the fields of a config.json, for weights in float32. Raises errors of many kinds for fields of a wrong type."""
        kept = {
            name: value for name, value in fields.items() if name not in ("torch_dtype", "auto_map", "custom_pipelines")
        }
        fixed = {"model_type": self.model_type, "dtype": "float32"}
        return self.config.from_dict({**kept, **fixed}, attn_implementation=self.attention)

    def positions(self, config: Any) -> int:
        """Return the most tokens of an input."""
        return int(config.max_position_embeddings)

    def segments(self, config: Any) -> int:
        """Return the number of segments that the encoder tells apart; 1 if it knows none."""
        return int(getattr(config, "type_vocab_size", 1) or 1)

    def weights(self, config: Any) -> int:
        """Return the number of weights of a model with this configuration, for the check of the memory; by default as BERT's are counted."""
        return weights_of(config)

    def new_base(self, config: Any, pooler: bool) -> Encoder:
        """Return a base model with random weights."""
        base: Encoder = self.base(config, add_pooling_layer=pooler) if self.has_pooler else self.base(config)
        return base

    def new_pooler(self, config: Any) -> nn.Module:
        """Return a tanh pooler with random weights. Raises ConfigError for a family without one."""
        raise ConfigError(f"A {self.model_type} encoder has no pooler. Use --pooling cls or --pooling mean.")

    def set_dropout(self, base: Encoder, rate: float) -> None:
        """Set the rates that are not in an `nn.Dropout`, and those of the configuration, which is saved with the weights."""
        for name in self.rates:
            setattr(base.config, name, rate)

    def named(self, config: Any, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the tensors of a file by the names of the base model, where transformers writes other names. One that is not known keeps its name."""
        return tensors

    @abstractmethod
    def words(self, base: Encoder) -> nn.Embedding:
        """Return the table of the wordpieces' embeddings."""

    @abstractmethod
    def from_below(self, base: Encoder) -> list[nn.Module]:
        """Return the embeddings and the layers, in order."""

    def position_states(self, base: Encoder, length: int) -> Tensor:
        """Return the embeddings of the first positions of a text, [length, H]. Raises ConfigError for a family without them."""
        raise ConfigError(
            f"A {self.model_type} encoder has no embeddings of positions, which retromae-init needs. Use condenser-init."
        )

    @abstractmethod
    def layer_states(self, base: Encoder, packed: TokenBatch, layers: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Return the states after the given layers (0 = the embeddings), each [B, L, H]; zeros at padding.

        Those of the last layer are the encoder's output, after a final norm where there is one.
        """

    @abstractmethod
    def states_at(self, base: Encoder, packed: TokenBatch, position_BP: Tensor) -> Tensor:
        """Return the output at some positions of each row, [B, P, H]. position_BP: int64, each at a real token."""

    @abstractmethod
    def head_layers(self, masked_lm: Encoder) -> tuple[nn.Linear, nn.LayerNorm]:
        """Return the dense layer and the layer norm before the decoder, with the activation between them."""

    @abstractmethod
    def transform(self, masked_lm: Encoder, state_XH: Tensor) -> Tensor:
        """Return what the decoder of the masked-language-model head reads, [..., H]."""

    @abstractmethod
    def decoder(self, masked_lm: Encoder) -> nn.Linear:
        """Return the last layer of the masked-language-model head, to the vocabulary."""

    def logits(self, masked_lm: Encoder, state_XH: Tensor) -> Tensor:
        """Return the logits of the vocabulary, [..., V]."""
        logits_XV: Tensor = self.decoder(masked_lm)(self.transform(masked_lm, state_XH))
        return logits_XV

    def require_positions(self, config: Any, tokens: int, what: str) -> None:
        """Check that an encoder has a position for each wordpiece of its longest input.

        Args:
            config: Its configuration.
            tokens: Wordpieces of that input, special tokens included.
            what: The options that decide the length, for the message.

        Raises:
            ConfigError: It has fewer positions.
        """
        if tokens > (positions := self.positions(config)):
            raise ConfigError(
                f"{what}: an input may have {tokens} wordpieces, but this encoder has {positions} positions. Use "
                "shorter inputs, or another encoder."
            )

    def check(self, config: Any) -> None:
        """Raise ValueError for a configuration that asks for what is not computed."""
        if self.positions(config) < 1:
            raise ValueError(
                f"max_position_embeddings is {config.max_position_embeddings}, so that a text has no position"
            )
