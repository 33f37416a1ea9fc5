"""Trainings of an encoder: `mlm-init`, `condenser-init` and `retromae-init`."""

from __future__ import annotations

from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.names import RANDOM, head_names
from realmctl.training.settings.base import LARGEST_BATCH, Optimizer, TrainSettings
from realmctl.training.settings.start import GroupBy, WarmStartSettings, other_start


class MlmSettings(TrainSettings):
    """Masked language modelling, on blocks or as copy pre-training."""

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    spans: Artifact | None = reads(
        "spans",
        help="Tagged sentences for copy pre-training. Default: train on blocks alone.",
        explicit_only=True,
        default=None,
    )
    bert: str = source(
        "BERT to start from: a folder, a hub id, or scratch:SIZE, where SIZE is tiny, mini, small, medium, base or such as L2-H128-A4.",
        default="scratch:tiny",
        literals=("scratch:",),
        hub=True,
    )
    head_init: str = setting(
        "Masked-language-model head at the start. random: random numbers where the BERT has no head. Another: fitted to the blocks (ridge: to "
        "the states of visible wordpieces), in place of any head that the BERT has.",
        default=RANDOM,
        choices=head_names,
        advanced=True,
    )
    steps: int = setting("Training steps. 0 keeps the head of --head-init.", default=10_000, at_least=0)
    layer_decay: float = setting(help_texts.LAYER_DECAY, default=1.0, above=0, at_most=1, advanced=True)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)
    mask_rate: float = setting(
        "Share of the wordpieces that are hidden.", default=0.15, above=0, below=1, used_without="spans"
    )
    practice: Literal["steady", "curriculum"] = setting(
        "Kind of copy pre-training with --spans. steady: blocks that restate the sentence. curriculum: copies of the sentence "
        "first, then noisy copies, other blocks, random blocks and null documents.",
        default="steady",
    )
    window: int = setting(
        "Window of a block in wordpieces.", default=64, at_least=8, used_with="practice=curriculum", advanced=True
    )
    length: int = setting(
        "Longest example in wordpieces, [CLS] and [SEP] included.",
        default=128,
        at_least=3,
        at_most=512,
        used_without="spans",
    )
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. It is saved with the encoder, so later stages train with it too. Default: the loaded "
        "BERT's own, and 0.1 from scratch. Copy pre-training of a few hundred steps learns faster with 0.",
        default=None,
        at_least=0,
        below=1,
        advanced=True,
    )


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
        help="Retriever to start from with --contrastive, instead of --encoder, such as an imported one: what it computes of a span "
        "is compared, so it keeps its pooling, projection, prompts and scale. It becomes the part `retriever` of the result.",
        explicit_only=True,
        default=None,
    )
    bert: str | None = source(
        "BERT to start from: a folder, a hub id or scratch:SIZE. If the folder holds a Condenser head "
        "(exported by realmctl, or model.pt of the public code), training continues with that head.",
        default=None,
        literals=("scratch:",),
        hub=True,
        used_without="encoder",
    )
    contrastive: bool = setting("Also train two spans of one document to find each other (coCondenser).", default=False)
    group_by: GroupBy = setting(help_texts.GROUP_BY, default="document", used_with="contrastive", advanced=True)
    skip_from: int | None = setting(
        "Layer whose token states the head reads; 0 = the embeddings. Default: that of the head that training continues with, "
        "otherwise the middle layer (6 of 12).",
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
