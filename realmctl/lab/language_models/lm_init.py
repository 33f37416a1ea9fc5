"""`realmctl lm-init`: salient-span pre-training of a language model."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer, require_same_vocabulary
from realmctl.lab.language_models.settings import LmInitSettings
from realmctl.training.settings.base import TrainingStage


class LmInit(LmInitSettings, TrainingStage):
    """Pre-train a language model on tagged sentences: one salient span of a sentence is hidden, and the model writes it.

    With a T5 this is the salient-span masking (SSM) of Roberts et al. 2020, which precedes closed-book fine-tuning. A causal model reads the sentence
    up to the span. With --blocks each sentence stands behind the block that restates it, so that the model learns to read.
    """

    makes = "language-model"
    headline = ("loss", "accuracy", "seconds_per_step")
    parallel = False

    def check(self) -> None:
        super().check()
        if self.blocks:
            require_same_vocabulary(self.blocks, self.spans)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.language_models.objective import train_on_spans

        return train_on_spans(self, out)
