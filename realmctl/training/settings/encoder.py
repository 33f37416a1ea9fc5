"""Training of an encoder: `mlm-init`."""

from __future__ import annotations

from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.pipeline import help_texts, reads, setting, source
from realmctl.training.names import RANDOM, head_names
from realmctl.training.settings.base import Optimizer, TrainSettings


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
