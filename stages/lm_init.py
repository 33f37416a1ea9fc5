"""`realmctl lm-init`: salient-span pre-training of a language model (T5 + SSM)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from realmctl.artifacts import Artifact, Writer
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting, source


class LmInit(Stage):
    """Pre-train a T5 on tagged sentences: one salient span of a sentence is hidden, and the model writes it.

    This is the salient-span masking (SSM) of Roberts et al. 2020, which precedes closed-book fine-tuning.
    """

    makes = "language-model"
    headline = ("loss", "accuracy", "seconds_per_step")
    resumable = True

    spans: Artifact = reads("spans", help="Tagged sentences to train on.")
    lm: str = source("Language model to start from: a folder or a hub id, such as a T5's.", hub=True)
    steps: int = setting(help_texts.STEPS, default=10_000, at_least=1)
    batch_size: int = setting("Sentences per step.", default=32, at_least=1)
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-4, above=0)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    length: int = setting("Longest sentence, in tokens of the language model.", default=128, at_least=4, at_most=4096)
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. Default: the model's own.", default=None, at_least=0, below=1
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime("Sentences computed at once; 0 means the whole batch.", default=0, at_least=0)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def trial(self) -> dict[str, float]:
        from realmctl.training.monitoring.trial import trial_of

        return trial_of(self.run, self.origin())

    def run(self, out: Writer) -> Mapping[str, Any]:
        from pathlib import Path

        from realmctl.models.lm.files import load_language_model, save_language_model
        from realmctl.models.lm.prompts import check_positions
        from realmctl.models.precision import seed_everything
        from realmctl.spans.tagged_queries import TaggedQueries
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.objectives.language_models import LanguageModelObjective, SalientSpanPairs

        model = load_language_model(Path(self.lm), self.dropout)
        check_positions(model, self.length, "--length")
        seed_everything(self.seed)
        pairs = SalientSpanPairs(model, TaggedQueries(self.spans), self.length)
        objective = LanguageModelObjective(
            model, pairs, batch_size=self.batch_size, micro_batch=self.micro_batch, seed=self.seed
        )
        schedule = Schedule.of(self)
        compute = Compute.of(self)
        metrics = train(objective, schedule, compute, out, "lm-init")
        save_language_model(model.cpu(), out.path)
        return {"sentences": len(pairs), **metrics}
