"""Settings of `condenser-init` and `retromae-init`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.settings.base import LARGEST_BATCH, Optimizer
from realmctl.training.settings.start import GroupBy, WarmStartSettings, other_start


class WarmEncoderSettings(WarmStartSettings):
    """A warm start whose training predicts masked wordpieces of windows of blocks."""

    warmup: int | None = setting("Warm-up steps. Default: a tenth of --steps.", default=None, at_least=0, advanced=True)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)
    length: int = setting(
        "Longest example in wordpieces, [CLS] and [SEP] included.", default=128, at_least=3, at_most=512
    )

    @property
    def warmup_steps(self) -> int:
        return self.steps // 10 if self.warmup is None else self.warmup


class CondenserSettings(WarmEncoderSettings):
    """Condenser, or coCondenser with `contrastive`."""

    encoder: Artifact | None = reads(
        "encoder",
        help="Encoder to start from. If condenser-init made it, training continues with its head.",
        optional=True,
        replaced_by=other_start,
        default=None,
    )
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to start from with --contrastive, instead of --encoder. It keeps its pooling, projection, prompts and scale, and becomes the part `retriever` of the result.",
        explicit_only=True,
        default=None,
    )
    bert: str | None = source(
        "BERT to start from: a folder, a hub id or scratch:SIZE. A Condenser head in the folder is trained further.",
        default=None,
        literals=("scratch:",),
        hub=True,
        used_without="encoder",
    )
    contrastive: bool = setting("Also train two spans of one document to find each other (coCondenser).", default=False)
    group_by: GroupBy = setting(help_texts.GROUP_BY, default="document", used_with="contrastive", advanced=True)
    skip_from: int | None = setting(
        "Layer whose token states the head reads; 0 = the embeddings. Default: that of the head, otherwise the middle layer.",
        default=None,
        at_least=0,
        advanced=True,
    )
    head_layers: int | None = setting(
        "Layers of the head. Default: those of the head that training continues with, otherwise 2.",
        default=None,
        at_least=1,
        at_most=48,
        advanced=True,
    )
    batch_size: int = setting(
        "Blocks per step; with --contrastive, documents per step, two spans each.",
        default=128,
        at_least=1,
        at_most=LARGEST_BATCH,
    )
    mask_rate: float = setting(
        "Share of the wordpieces to mask. Words are masked whole.", default=0.15, above=0, below=1, advanced=True
    )
    micro_batch: int = runtime(
        "Blocks computed at once, or spans with --contrastive; 0 means the whole batch. The gradients stay those of the whole batch.",
        default=0,
        at_least=0,
    )


class RetroMaeSettings(WarmEncoderSettings):
    """RetroMAE, or DupMAE with `bag_of_words`."""

    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to start from, instead of --encoder. It keeps its pooling, projection, prompts and scale, and becomes the part `retriever` of the result.",
        explicit_only=True,
        default=None,
    )
    batch_size: int = setting("Blocks per step.", default=128, at_least=1)
    mask_rate: float = setting(
        "Share of the wordpieces that are masked for the encoder. Words are masked whole.",
        default=0.3,
        above=0,
        below=1,
        advanced=True,
    )
    bag_of_words: float = setting(
        "Weight of DupMAE's loss: the wordpieces of the text, without order, predicted from the states behind [CLS]. The public code "
        "has 0.1. 0 is RetroMAE.",
        default=0.0,
        at_least=0,
        at_most=1e3,
    )


RETROMAE: Mapping[str, Mapping[str, Any]] = {
    "retromae-init": {
        "optimizer": "adamw",
        "lr": 1e-4,
        "warmup": None,
        "batch_size": 256,
        "length": 512,
        "mask_rate": 0.3,
        "bag_of_words": 0.0,
    },
}
"""As in the paper. Its recipe counts 8 passes over the corpus, so --steps is 8 times the blocks divided by the batch size."""

_CONDENSER: Mapping[str, Any] = {  # warmup None: a tenth of the steps
    "optimizer": "adamw",
    "lr": 1e-4,
    "warmup": None,
    "mask_rate": 0.15,
    "length": 128,
    "skip_from": 6,
    "head_layers": 2,
}
CONDENSER: Mapping[str, Mapping[str, Any]] = {
    "condenser-init": {**_CONDENSER, "batch_size": 1024, "contrastive": False}
}
COCONDENSER: Mapping[str, Mapping[str, Any]] = {
    "condenser-init": {**_CONDENSER, "batch_size": 2000, "contrastive": True}
}
