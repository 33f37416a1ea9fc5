"""Encoders that serve as a tower of a retriever, and as nothing else: transformers runs them, and no head of theirs is read.

A family is one class with its `model_type`, and what differs from most. transformers itself says which classes its configuration and its
modules have, which tensors of a folder are which weights, and whether the attention is causal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

import torch
import transformers
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, MODEL_MAPPING, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

from realmctl.errors import ConfigError, InputError
from realmctl.extras.families.padded import Padded
from realmctl.models.bert.limits import SIZE_LIMITS
from realmctl.models.weights import WithoutDraws

HEADS = ("lm_head.", "cls.", "score.", "classifier.", "vocab_", "predictions.", "sop_classifier.", "decoder.")
"""How the names of tensors begin that belong to heads, and to T5's decoder."""


class TowerOnly(Padded):
    """A family whose base model has embeddings and a list of layers."""

    has_pooler = False
    head = HEADS
    tied: ClassVar[dict[str, str]] = {}

    @property
    def config(self) -> type[PretrainedConfig]:  # type: ignore[override]
        """transformers' class of the configuration."""
        found: type[PretrainedConfig] = CONFIG_MAPPING[self.model_type]
        return found

    @property
    def base(self) -> type[PreTrainedModel]:  # type: ignore[override]
        """transformers' class of the base model, as AutoModel chooses it."""
        found: type[PreTrainedModel] = MODEL_MAPPING[self.config]
        return found

    @property
    def rates(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the dropout rates in config.json."""
        return tuple(name for name, value in vars(self.config()).items() if "dropout" in name and type(value) is float)

    def config_of(self, fields: Mapping[str, Any]) -> PretrainedConfig:
        """Return the configuration in the fields of a config.json. Nothing is generated, so that no keys and values are kept."""
        found: PretrainedConfig = super().config_of({**fields, "use_cache": False})
        return found

    def segments(self, config: PretrainedConfig) -> int:
        """Return 1: every token is in the first segment, as in sentence-transformers."""
        return 1

    def weights(self, config: PretrainedConfig) -> int:
        """Return the number of weights, counted on a model without memory."""
        with torch.device("meta"), WithoutDraws():
            return sum(weight.numel() for weight in self.new_base(config, False).parameters())

    def words(self, base: PreTrainedModel) -> nn.Embedding:
        """Return the table of the wordpieces' embeddings."""
        table: nn.Embedding = base.get_input_embeddings()
        return table

    def from_below(self, base: PreTrainedModel) -> list[nn.Module]:
        """Return the embeddings and the layers, in order."""
        embeddings = next(part for name, part in base.named_children() if name.startswith(("embed", "shared")))
        layers = next(part for part in base.modules() if isinstance(part, nn.ModuleList))
        return [embeddings, *layers]

    def set_dropout(self, base: PreTrainedModel, rate: float) -> None:
        """Set the rates of the configuration, and those that modules hold as numbers."""
        super().set_dropout(base, rate)
        for part in base.modules():
            for name in [name for name, value in vars(part).items() if "dropout" in name and type(value) is float]:
                setattr(part, name, rate)

    def named(self, config: PretrainedConfig, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the tensors by the names and in the shapes with which transformers computes; its first authors may have had others."""
        kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(self.head)}
        with WithoutDraws(), _without_a_report():
            model, told = self.base.from_pretrained(
                None,
                config=config,
                state_dict=kept,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
        if odd := sorted(map(str, told["mismatched_keys"])):
            raise InputError(
                f"The weights do not fit a {self.model_type} encoder: {odd[0]} differs. Get the folder again."
            )
        found = {name: tensor for name, tensor in model.state_dict().items() if name not in told["missing_keys"]}
        unknown = {
            name: kept.get(name, torch.zeros(())) for name in told["unexpected_keys"]
        }  # whose names tell what is wrong
        return found | unknown

    def masked_lm(self, config: PretrainedConfig) -> NoReturn:  # type: ignore[override]
        """Raise ConfigError: what needs a masked language model cannot begin here."""
        self._no_head()

    def head_layers(self, masked_lm: PreTrainedModel) -> NoReturn:
        """Raise ConfigError."""
        self._no_head()

    def transform(self, masked_lm: PreTrainedModel, state_XH: Tensor) -> NoReturn:
        """Raise ConfigError."""
        self._no_head()

    def decoder(self, masked_lm: PreTrainedModel) -> NoReturn:
        """Raise ConfigError."""
        self._no_head()

    def _no_head(self) -> NoReturn:
        raise ConfigError(
            f"A {self.model_type} encoder is a tower of a retriever here, and has no head for masked language modelling. Import it (`realmctl "
            "import FOLDER`, `index-docs --encoder`, `ict-init --retriever`), or begin with one of BERT, RoBERTa, MPNet or ModernBERT."
        )


@contextmanager
def _without_a_report() -> Iterator[None]:
    """transformers lists tensors that do not fit, and shows a bar. Here the caller names the first of them."""
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)


class DistilBert(TowerOnly):
    """DistilBERT (Sanh et al. 2019)."""

    model_type = "distilbert"
    activation = "activation"


class WithPooler(TowerOnly):
    """A family whose class of transformers makes a pooler unless it is told not to. It is not read."""

    def new_base(self, config: PretrainedConfig, pooler: bool) -> PreTrainedModel:
        """Return a base model with random weights, without a pooler."""
        return self.base(config, add_pooling_layer=False)


class Albert(WithPooler):
    """ALBERT (Lan et al. 2020). Its layers share their weights."""

    model_type = "albert"


class Ernie(WithPooler):
    """ERNIE (Sun et al. 2019)."""

    model_type = "ernie"


class NomicBert(TowerOnly):
    """Nomic BERT (Nussbaum et al. 2024), with rotary positions."""

    model_type = "nomic_bert"


class Gte(TowerOnly):
    """GTE (Zhang et al. 2024), with rotary positions."""

    model_type = "gte"


class JinaV3(WithPooler):
    """Jina's XLM-R with rotary positions (Sturua et al. 2024)."""

    model_type = "jina_embeddings_v3"


class EuroBert(TowerOnly):
    """EuroBERT (Boizard et al. 2025), with rotary positions."""

    model_type = "eurobert"


class Decoder(TowerOnly):
    """A decoder. Its attention is causal, unless config.json says that it is not."""

    def sees_no_padding(self, config: PretrainedConfig) -> bool:
        """Whether the attention is causal: padding stands behind all real tokens."""
        both = getattr(config, "use_bidirectional_attention", None) or not getattr(config, "is_causal", True)
        return not both


class Llama(Decoder):
    """Llama (Touvron et al. 2023)."""

    model_type = "llama"


class Mistral(Decoder):
    """Mistral (Jiang et al. 2023), with attention in windows where config.json says so."""

    model_type = "mistral"


class Qwen2(Decoder):
    """Qwen2 (Yang et al. 2024)."""

    model_type = "qwen2"


class Qwen3(Decoder):
    """Qwen3 (Yang et al. 2025), of which Qwen3-Embedding is one."""

    model_type = "qwen3"


class Gemma(Decoder):
    """Gemma (Gemma Team 2024)."""

    model_type = "gemma"


class Gemma2(Decoder):
    """Gemma 2 (Gemma Team 2024), whose scores of attention have a largest value."""

    model_type, activation, attention = "gemma2", "hidden_activation", "eager"


class Gemma3(Decoder):
    """Gemma 3 (Gemma Team 2025), of which EmbeddingGemma is one, whose attention goes both ways."""

    model_type, activation = "gemma3_text", "hidden_activation"


class T5(TowerOnly):
    """The encoder of T5 (Raffel et al. 2020), whose positions are relative and have no end. The decoder is not read."""

    model_type, activation = "t5", "dense_act_fn"
    tied: ClassVar[dict[str, str]] = {"encoder.embed_tokens.weight": "shared.weight"}

    @property
    def base(self) -> type[PreTrainedModel]:  # type: ignore[override]
        """transformers' class of the encoder, such as T5EncoderModel."""
        found: type[PreTrainedModel] = getattr(
            transformers, self.config.__name__.removesuffix("Config") + "EncoderModel"
        )
        return found

    def positions(self, config: PretrainedConfig) -> int:
        """Return more tokens than any input has."""
        return SIZE_LIMITS["max_position_embeddings"]


class Mt5(T5):
    """The encoder of mT5 (Xue et al. 2021)."""

    model_type = "mt5"
