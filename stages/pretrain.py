"""`realmctl pretrain`: REALM pre-training, with an index that is refreshed while training runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import (
    Artifact,
    Writer,
    require_descent,
    require_same_vocabulary,
    require_titles,
    tokenizer_folder,
    writing,
)
from realmctl.deviations import PretrainDeviation, explained
from realmctl.errors import ConfigError
from realmctl.execution import processes
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.monitoring.alarms import AlarmName
from realmctl.training.refresh.settings import RefreshSettings
from realmctl.training.training_stage import (
    retriever_lr_multiplier,
)

if TYPE_CHECKING:
    from realmctl.models.reader import Reader
    from realmctl.models.retriever import Retriever
    from realmctl.training.objectives.pretrain import PretrainObjective
    from realmctl.training.refresh.index_in_use import IndexInUse


class Pretrain(RefreshSettings):
    """Pre-train retriever and reader together: fill hidden salient spans with the help of retrieved blocks.

    A killed run continues from its last checkpoint with the same command.
    """

    makes = "model"
    headline = ("loss", "retrieval_utility", "null_share", "recall@*", "refreshes", "alarms", "seconds_per_step")

    spans: Artifact = reads(
        "spans", help="Tagged sentences to learn from. They may come from another corpus than the blocks."
    )
    encoder: Artifact | None = reads(
        "encoder", "reader", help="Encoder that the reader starts from.", optional=True, replaced_by=("bert",)
    )
    bert: str | None = source(
        "BERT that the reader starts from, instead of --encoder: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    recall_questions: Path | None = source(
        "File of questions whose recall@1, @5 and @20 is logged whenever the index changes. At most 300 of them are used.",
        default=None,
    )
    batch_size: int = setting("Sentences per step.", default=512, at_least=1)
    lr: float = setting(help_texts.LEARNING_RATE, default=3e-5, above=0)
    retriever_lr: float | None = setting("Peak learning rate of the retriever. Default: --lr.", default=None, above=0)
    layer_decay: float = setting(help_texts.READER_LAYER_DECAY, default=1.0, above=0, at_most=1)
    dropout: float | None = setting(
        "Dropout of retriever and reader, saved with them. Default: each one's own.", default=None, at_least=0, below=1
    )
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="bert")
    candidates: int = setting("Candidates per query, the null document included.", default=8, at_least=2)
    null_document: bool = setting(
        "Make the null document candidate 0. Without it, all candidates are blocks, and the null document only serves to measure"
        " retrieval_utility.",
        default=True,
    )
    exclude_own: bool = setting("Exclude the block that holds the sentence itself from its candidates.", default=True)
    marginal: Literal["token", "sequence"] = setting(
        "Marginal likelihood. token: of each wordpiece (official code). sequence: of the whole span (paper).",
        default="token",
    )
    masking: Literal["salient", "random-span", "random-uniform"] = setting(
        "What is hidden. salient: a salient span. random-span: a random span of the same length. random-uniform: random wordpieces.",
        default="salient",
    )
    official: tuple[PretrainDeviation, ...] = setting(
        explained(PretrainDeviation),
        default=(),
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime("Sentences computed at once; 0 means the whole batch.", default=0, at_least=0)
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    stop_on: tuple[AlarmName, ...] = runtime(
        "Alarms at which the run stops with exit code 6 and keeps its checkpoint: one or more names, separated by commas.",
        default=(),
    )
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def check(self) -> None:
        super().check()
        require_same_vocabulary(self.blocks, self.spans, self.retriever)
        require_titles(self.blocks)
        if "recall_lost" in self.stop_on and self.recall_questions is None:
            raise ConfigError("--stop-on recall_lost needs --recall-questions FILE, whose recall it watches.")
        require_descent(self.index, self.blocks, self.retriever)

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.models.reader import Reader
        from realmctl.models.retriever import Retriever
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.refresh.index_in_use import publish_retriever_and_index, refreshed_index
        from realmctl.training.starts.encoder import starting_bert

        retriever = Retriever.load(self.retriever.path, self.dropout)
        reader = Reader.from_masked_lm(starting_bert(self.encoder, self.bert, self.blocks, self.seed, self.dropout))
        with refreshed_index(self, out, "snapshot-queries" in self.official) as in_use:
            objective = self._objective(retriever, reader, in_use)
            metrics = train(objective, Schedule.of(self), Compute.of(self), out, "pretrain")
        if not processes.is_first():  # the first process embeds the blocks with the final retriever
            return metrics
        index = publish_retriever_and_index(self, out, retriever)
        with writing(out.path / "reader", dataclasses.replace(out.origin, kind="reader")) as part:
            reader.cpu().save(part.path)
            part.copy_folder(".", tokenizer_folder(self.blocks))
        last = self._last_measures(out, objective, index)
        return {**metrics, **last, "refreshes": in_use.refreshes, "alarms": objective.alarms.counts}

    def _objective(self, retriever: Retriever, reader: Reader, current: IndexInUse) -> PretrainObjective:
        from realmctl.corpus.corpus import Corpus
        from realmctl.models.inputs import Collator
        from realmctl.questions.questions import read_questions
        from realmctl.spans.tagged_queries import TaggedQueries
        from realmctl.tokens import wordpiece
        from realmctl.training.monitoring.alarms import Alarms, rules
        from realmctl.training.monitoring.recall_questions import RecallQuestions
        from realmctl.training.objectives.pretrain import PretrainObjective, PretrainOptions

        queries, corpus, collator = (
            TaggedQueries(self.spans),
            Corpus(self.blocks),
            Collator.of(wordpiece.load(self.blocks.path)),
        )
        recall_questions = (
            RecallQuestions(read_questions(self.recall_questions), corpus, collator, self.precision)
            if self.recall_questions
            else None
        )
        chance = (self.candidates - self.null_document) / len(corpus)
        period = None if self.refresh == "never" or self.refresh_every == "auto" else self.refresh_every
        alarms = Alarms(rules(self.steps, period, chance), self.stop_on)
        options = PretrainOptions(
            batch_size=self.batch_size,
            candidates=self.candidates,
            marginal=self.marginal,
            masking=self.masking,
            seed=self.seed,
            null_document=self.null_document,
            exclude_own=self.exclude_own,
            official=self.official,
            retriever_lr_multiplier=retriever_lr_multiplier(self.lr, self.retriever_lr) or 1.0,
            layer_decay=self.layer_decay,
            precision=self.precision,
        )
        return PretrainObjective(
            retriever,
            reader,
            queries,
            corpus,
            collator,
            current,
            options,
            micro_batch=self.micro_batch,
            alarms=alarms,
            recall_questions=recall_questions,
        )

    def _last_measures(self, out: Writer, objective: PretrainObjective, index: Artifact) -> dict[str, float]:
        """Measure the final retriever and index, and append the numbers to metrics.jsonl."""
        from realmctl.index.index_type import open_index
        from realmctl.models.precision import pick_device

        if objective.recall_questions is None:
            return {}
        device = pick_device(self.device)  # it was published from the CPU
        objective.retriever.to(device)
        found = objective.published(open_index(index.path, str(device)))
        with out.file("metrics.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"step": self.steps, **found}) + "\n")
        return found
