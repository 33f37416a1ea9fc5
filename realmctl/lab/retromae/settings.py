"""Settings of `retromae-init`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.pipeline import reads, setting
from realmctl.training.settings.encoder import WarmEncoderSettings


class RetroMaeSettings(WarmEncoderSettings):
    """RetroMAE, or DupMAE with `bag_of_words`."""

    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to start from, instead of --encoder, such as an imported one: what it pools is decoded, so it keeps its "
        "pooling, projection, prompts and scale. It becomes the part `retriever` of the result.",
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


PRESET: Mapping[str, Mapping[str, Any]] = {
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
