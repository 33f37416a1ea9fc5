"""Settings of `spider-init`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from realmctl.deviations import explained
from realmctl.pipeline import help_texts, setting
from realmctl.training.settings.base import LARGEST_BATCH, rate
from realmctl.training.settings.retriever import RetrieverTrainingSettings
from realmctl.training.settings.start import GroupBy

SpiderDeviation = Literal["short-spans"]
MEANING = {
    "short-spans": "take spans of at most 9 words, and none with the last word of its block, where the loop of the public code stops"
}


class SpiderSettings(RetrieverTrainingSettings):
    """Recurring span retrieval."""

    group_by: GroupBy = setting(help_texts.GROUP_BY, default="document", advanced=True)
    steps: int = setting("Training steps. 0 saves the initial weights.", default=200_000, at_least=0)
    batch_size: int = setting(
        "Documents per step. Each gives a query, its block and a hard negative; the other blocks of the batch are negatives too.",
        default=1024,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    lr: float = rate(2e-5)
    window: int = setting(
        "Most wordpieces of a query; it has at least 5.", default=30, at_least=5, at_most=511, advanced=True
    )
    official: tuple[SpiderDeviation, ...] = setting(explained(SpiderDeviation, MEANING), default=(), advanced=True)


PRESET: Mapping[str, Mapping[str, Any]] = {
    "spider-init": {
        "optimizer": "adamw",
        "steps": 200_000,
        "batch_size": 1024,
        "lr": 2e-5,
        "warmup": 2000,
        "window": 30,
        "official": get_args(SpiderDeviation),
        "query_length": 64,
        "pooling": "cls",
        "towers": "shared",
    },
}
"""As in the paper and the public code."""
