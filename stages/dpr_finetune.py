"""`realmctl dpr-finetune`: fine-tune a retriever on questions with labelled passages, as DPR does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, tokenizer_folder
from realmctl.errors import ConfigError, MismatchError
from realmctl.log import say, warn
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.training_stage import TrainingStage

if TYPE_CHECKING:
    from realmctl.models.retriever import Retriever
    from realmctl.training.objectives.labelled import LabelledObjective


class DprFinetune(TrainingStage):
    """Fine-tune a retriever on questions with labelled passages: training files of DPR and Tevatron, or judged queries.

    Each question has to find its positive passage among all passages of the batch. The retriever may come from `ict-init`,
    with --steps 0 for a BERT as it is, or from `import`. Under torchrun each process takes a part of the batch. The
    defaults are those of DPR.
    """

    makes = "retriever"
    headline = ("loss", "accuracy", "seconds_per_step")

    retriever: Artifact | None = reads("retriever", help="Retriever to fine-tune.", explicit_only=True)
    passages: Path = source(
        "Questions with labelled passages: DPR's JSON, Tevatron's JSON lines or Parquet, a BEIR folder, or queries with --qrels."
    )
    qrels: Path | None = source(
        "Relevance judgements of the queries, in TREC's or BEIR's format. Those of 0 are hard negatives.", default=None
    )
    corpus: tuple[Path, ...] = source("Corpus with the passages that are named by id alone.", default=())
    hard_negatives: int = setting("Hard negatives of a question at each step.", default=1, at_least=0, at_most=32)
    steps: int = setting(help_texts.STEPS, default=18_400, at_least=1)
    batch_size: int = setting(
        "Questions per step; the passages of the others are negatives too.", default=128, at_least=2
    )
    lr: float = setting(help_texts.LEARNING_RATE, default=2e-5, above=0)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime(help_texts.CONTRAST_MICRO_BATCH, default=0, at_least=0)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def check(self) -> None:
        if self.retriever is None:
            raise ConfigError("dpr-finetune needs --retriever, for instance --retriever artifacts/retriever/v1.")

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.models.precision import seed_everything
        from realmctl.models.retriever import Retriever
        from realmctl.training.loop import Compute, Schedule, train

        assert self.retriever is not None
        seed_everything(self.seed)
        retriever = Retriever.load(self.retriever.path)
        if retriever.block_tower is None:
            raise MismatchError(
                f"{self.retriever} has no block tower, so it cannot learn from passages. Name the retriever it was made from."
            )
        objective = self._objective(retriever)
        metrics = train(objective, Schedule.of(self), Compute.of(self), out, self.command())
        retriever.cpu().save(out.path)
        out.copy_folder("tokenizer", tokenizer_folder(self.retriever))
        return {**metrics, "questions": len(objective.questions)}

    def _objective(self, retriever: Retriever) -> LabelledObjective:
        from realmctl.models.inputs import Collator
        from realmctl.questions.ranking.judged import training_questions
        from realmctl.tokens import wordpiece
        from realmctl.training.objectives.in_batch import ContrastOptions
        from realmctl.training.objectives.labelled import LabelledObjective, usable_questions

        assert self.retriever is not None
        words, dropped = wordpiece.load(tokenizer_folder(self.retriever)), Counter[str]()
        labelled = training_questions(self.passages, self.qrels, self.corpus)
        questions = usable_questions(labelled, words, self.hard_negatives, dropped)
        say(f"{self.passages}: {len(questions)} questions with labelled passages")
        for reason, count in dropped.items():
            warn(f"{self.passages}: {count} questions left out: {reason}")
        options = ContrastOptions(batch_size=self.batch_size, seed=self.seed, micro_batch=self.micro_batch)
        return LabelledObjective(retriever, Collator.of(words), options, questions, hard_negatives=self.hard_negatives)
