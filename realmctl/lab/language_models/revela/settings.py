"""Settings of `revela-init`."""

from __future__ import annotations

import dataclasses
from typing import Self

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.settings.base import Optimizer, TrainSettings, rate
from realmctl.training.settings.start import GroupBy


class RevelaSettings(TrainSettings):
    """A retriever that learns what a language model wants to read beside a text."""

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    retriever: Artifact = reads("retriever", help="Retriever to start from, such as one that was imported.")
    lm: str = source("Causal language model that reads: a folder or a hub id.", hub=True)
    steps: int = setting(help_texts.STEPS, default=10_000, at_least=1)
    batch_size: int = setting(
        "Blocks per step, which read each other. The paper has 16.", default=16, at_least=2, at_most=1024
    )
    blocks_each: int = setting(
        "Neighbouring blocks of a document in a batch; the other blocks of the batch are of other documents.",
        default=4,
        at_least=1,
        at_most=1024,
    )
    group_by: GroupBy = setting(help_texts.GROUP_BY, default="document", advanced=True)
    lr: float = rate(1e-4)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)
    temperature: float = setting(
        "What the cosines of blocks are divided by before the softmax. The authors' script has 0.0001, where one block is read nearly alone.",
        default=0.01,
        at_least=1e-6,
        at_most=1e3,
    )
    freeze_lm: bool = setting("Leave the language model as it is, and train the retriever alone.", default=False)
    length: int = setting("Longest block, in tokens of the language model.", default=160, at_least=8, at_most=4096)
    micro_batch: int = runtime(
        "A batch reads itself, so it is computed at once: leave this at 0.", default=0, at_least=0
    )

    def check(self) -> None:
        if 0 < self.micro_batch < self.batch_size:
            raise ConfigError(
                f"--micro-batch {self.micro_batch}: the blocks of a batch read each other, so they are computed at once. Use a smaller --batch-size."
            )
        if self.blocks_each >= self.batch_size:
            raise ConfigError(
                f"--blocks-each {self.blocks_each} leaves no room for another document in a batch of {self.batch_size} blocks. Use a larger "
                "--batch-size, or a smaller --blocks-each."
            )

    def with_batch(self, examples: int) -> Self:
        return dataclasses.replace(
            super().with_batch(examples), blocks_each=min(self.blocks_each, max(1, examples // 2))
        )
