"""Encoders that serve as a tower of a retriever, and as nothing else: transformers runs them, and their masked-language-model head is not read.

A family is one class: the two classes of transformers, and how the names of the tensors of its heads begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertModel,
    DistilBertConfig,
    DistilBertModel,
    ErnieConfig,
    ErnieModel,
    EuroBertConfig,
    EuroBertModel,
    GteConfig,
    GteModel,
    NomicBertConfig,
    NomicBertModel,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging

from realmctl.errors import ConfigError, InputError
from realmctl.extras.families.padded import Padded
from realmctl.models.weights import WithoutDraws


class TowerOnly(Padded):
    """A family whose base model has embeddings and a list of layers."""

    has_pooler = False
    tied: ClassVar[dict[str, str]] = {}

    def segments(self, config: PretrainedConfig) -> int:
        """Return 1: every token is in the first segment, as in sentence-transformers."""
        return 1

    def weights(self, config: PretrainedConfig) -> int:
        """Return the number of weights, counted on a model without memory."""
        with torch.device("meta"):
            return sum(weight.numel() for weight in self.new_base(config, False).parameters())

    def words(self, base: PreTrainedModel) -> nn.Embedding:
        """Return the table of the wordpieces' embeddings."""
        table: nn.Embedding = base.get_input_embeddings()
        return table

    def from_below(self, base: PreTrainedModel) -> list[nn.Module]:
        """Return the embeddings and the layers, in order."""
        embeddings = next(part for name, part in base.named_children() if name.startswith("embed"))
        layers = next(part for part in base.modules() if isinstance(part, nn.ModuleList))
        return [embeddings, *layers]

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


class DistilBert(TowerOnly):
    """DistilBERT (Sanh et al. 2019)."""

    model_type = "distilbert"
    config, base = DistilBertConfig, DistilBertModel
    head = ("vocab_transform.", "vocab_layer_norm.", "vocab_projector.")
    rates, activation = ("dropout", "attention_dropout"), "activation"


class Albert(TowerOnly):
    """ALBERT (Lan et al. 2020). Its layers share their weights."""

    model_type = "albert"
    config, base = AlbertConfig, AlbertModel
    head = ("predictions.", "sop_classifier.")

    def new_base(self, config: PretrainedConfig, pooler: bool) -> PreTrainedModel:
        """Return a base model with random weights, without a pooler."""
        return self.base(config, add_pooling_layer=False)

    def layer_states(self, base: PreTrainedModel, packed: Any, layers: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Return the output alone, for whatever layer is named: there is one set of weights."""
        state_BLH = super().layer_states(base, packed, (len(self.from_below(base)) - 1,))[0]
        return tuple(state_BLH for _ in layers)


class Ernie(TowerOnly):
    """ERNIE (Sun et al. 2019)."""

    model_type = "ernie"
    config, base = ErnieConfig, ErnieModel
    head = ("cls.",)

    def new_base(self, config: PretrainedConfig, pooler: bool) -> PreTrainedModel:
        """Return a base model with random weights, without a pooler."""
        return self.base(config, add_pooling_layer=False)


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


class Converted(TowerOnly):
    """A family whose tensors transformers saves by other names and shapes than it computes with, as its first authors did."""

    def named(self, config: PretrainedConfig, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the tensors as transformers converts them."""
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
        return found | {name: kept[name] for name in told["unexpected_keys"] if name in kept}


class NomicBert(Converted):
    """Nomic BERT (Nussbaum et al. 2024), with rotary positions."""

    model_type = "nomic_bert"
    config, base = NomicBertConfig, NomicBertModel
    head = ("cls.",)


class Gte(Converted):
    """GTE (Zhang et al. 2024), with rotary positions."""

    model_type = "gte"
    config, base = GteConfig, GteModel
    head = ("lm_head.",)


class EuroBert(TowerOnly):
    """EuroBERT (Boizard et al. 2025), with rotary positions."""

    model_type = "eurobert"
    config, base = EuroBertConfig, EuroBertModel
    head = ("lm_head.",)
    rates = ("attention_dropout",)
