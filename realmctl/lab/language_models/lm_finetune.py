"""`realmctl lm-finetune`: teach a language model to answer questions without documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Writer
from realmctl.artifacts.manifest import is_artifact
from realmctl.errors import ConfigError
from realmctl.lab.language_models.settings import LmFinetuneSettings
from realmctl.training.settings.base import TrainingStage


class LmFinetune(LmFinetuneSettings, TrainingStage):
    """Fine-tune a language model, such as T5 or GPT-2, as a closed-book QA model (Roberts et al. 2020).

    The model writes the answer after the question and reads no blocks. `eval-em` and `ask` take the result as they take that
    of `finetune`.
    """

    makes = "qa-model"
    headline = ("loss", "accuracy", "seconds_per_step")
    parallel = False

    def check(self) -> None:
        if (self.lm is None) == (self.language_model is None):
            raise ConfigError("lm-finetune needs --lm or --language-model, and not both.")
        if self.lm is not None and is_artifact(Path(self.lm)):
            raise ConfigError(f"--lm {self.lm} is an artifact. Use --language-model {self.lm} instead.")
        if self.prompt is not None and self.prompt.count("{question}") != 1:
            raise ConfigError(f"--prompt {self.prompt[:60]!r} must contain {{question}} once.")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.language_models.objective import train_on_questions

        return train_on_questions(self, out)
