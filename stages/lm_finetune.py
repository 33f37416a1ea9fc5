"""`realmctl lm-finetune`: teach a language model to answer questions without documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, version_numbers, writing
from realmctl.errors import ConfigError
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting, source

if TYPE_CHECKING:
    from realmctl.models.lm.model import LanguageModel


class LmFinetune(Stage):
    """Fine-tune a language model, such as T5 or GPT-2, as a closed-book answerer (Roberts et al. 2020).

    The model writes the answer after the question and reads no blocks. `eval-em` and `ask` take the result as they take that
    of `finetune`.
    """

    makes = "qa-model"
    headline = ("loss", "accuracy", "seconds_per_step")
    resumable = True

    lm: str | None = source("Language model to start from: a folder or a hub id.", default=None, hub=True)
    language_model: Artifact | None = reads(
        "language-model", help="Language model that lm-init made, instead of --lm.", explicit_only=True
    )
    questions: Path = source(help_texts.QUESTIONS)
    prompt: str | None = setting(
        "Text that the model reads, with {question} at the question's place. Default: the question alone for T5's kind, and"
        " 'Question: {question}', a line break and 'Answer:' for GPT-2's.",
        default=None,
    )
    epochs: float = setting("Number of passes over the questions.", default=20.0, above=0)
    steps: int | None = setting("Number of training steps, instead of --epochs.", default=None, at_least=1)
    batch_size: int = setting("Questions per step.", default=32, at_least=1)
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-4, above=0)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. Default: the model's own.", default=None, at_least=0, below=1
    )
    question_length: int = setting(
        "Longest prompt with its question, in tokens of the language model.", default=128, at_least=4, at_most=4096
    )
    answer_length: int = setting(
        "Longest answer, in tokens of the language model.", default=32, at_least=1, at_most=512
    )
    beams: int = setting(
        "Width of the beam that writes answers. 1: greedy decoding.", default=1, at_least=1, at_most=64
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None)
    answer_field: str | None = setting(
        help_texts.ANSWER_FIELD,
        default=None,
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime("Questions computed at once; 0 means the whole batch.", default=0, at_least=0)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def check(self) -> None:
        if (self.lm is None) == (self.language_model is None):
            raise ConfigError("lm-finetune needs --lm or --language-model, and not both.")
        if self.lm is not None and version_numbers(Path(self.lm)):
            raise ConfigError(f"--lm {self.lm} is a series of artifacts. Use --language-model {self.lm} instead.")
        if self.prompt is not None and self.prompt.count("{question}") != 1:
            raise ConfigError(f"--prompt {self.prompt[:60]!r} must contain {{question}} once.")

    def trial(self) -> dict[str, float]:
        from realmctl.training.monitoring.trial import trial_of

        return trial_of(self.run, self.origin())

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.artifacts.description import QA_MODEL, write_description
        from realmctl.models.lm.files import load_language_model
        from realmctl.models.lm.prompts import check_positions, check_prompt, default_prompt
        from realmctl.models.precision import seed_everything
        from realmctl.questions.questions import read_questions
        from realmctl.retrieval.answering.generative import GenerativeDescription
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.objectives.language_models import ClosedBookPairs, LanguageModelObjective

        questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
        model = load_language_model(
            self.language_model.path if self.language_model else Path(str(self.lm)), self.dropout
        )
        seed_everything(self.seed)
        prompt = self.prompt or default_prompt(model)
        check_prompt(model, prompt, self.question_length)
        check_positions(model, self.question_length + self.answer_length + 1, "--question-length and --answer-length")
        pairs = ClosedBookPairs(
            model, questions, prompt=prompt, question_length=self.question_length, answer_length=self.answer_length
        )
        objective = LanguageModelObjective(
            model, pairs, batch_size=self.batch_size, micro_batch=self.micro_batch, seed=self.seed
        )
        steps = self.steps or max(1, round(self.epochs * len(pairs) / self.batch_size))
        schedule = Schedule.of(self, steps=steps)
        compute = Compute.of(self)
        metrics = train(objective, schedule, compute, out, "lm-finetune")
        self._save(model, out)
        described = GenerativeDescription(
            answerer="generative",
            searcher=None,
            objective="closed-book",
            reader_beam=0,
            beams=self.beams,
            prompt=prompt,
            reader_length=self.question_length,
            span_width=self.answer_length,
        )
        write_description(out.file(QA_MODEL), described)
        return {"questions": len(questions), **metrics}

    def _save(self, model: LanguageModel, out: Writer) -> None:
        from realmctl.models.lm.files import save_language_model
        from realmctl.retrieval.answering.generative import PART

        with writing(out.path / PART, dataclasses.replace(out.origin, kind=PART)) as part:
            save_language_model(model.cpu(), part.path)
