"""`realmctl pretrain`: REALM pre-training, with an index that is refreshed while training runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import (
    Artifact,
    Origin,
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
from realmctl.log import warn
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.monitoring.alarms import AlarmName
from realmctl.training.training_stage import (
    TrainingStage,
    require_dropout,
    require_layer_decay,
    retriever_lr_multiplier,
)

if TYPE_CHECKING:
    from realmctl.models.reader import Reader
    from realmctl.models.retriever import Retriever
    from realmctl.training.objectives.pretrain import PretrainObjective
    from realmctl.training.refresh.current_index import CurrentIndex
    from realmctl.training.refresh.pace import Pace
    from realmctl.training.refresh.refresh import Refresh
    from realmctl.training.refresh.refresh_folder import RefreshFolder


class Pretrain(TrainingStage):
    """Pre-train retriever and reader together: fill hidden salient spans with the help of retrieved blocks.

    A killed run continues from its last checkpoint with the same command.
    """

    makes = "model"
    headline = ("loss", "retrieval_utility", "null_share", "recall@*", "refreshes", "alarms", "seconds_per_step")

    spans: Artifact = reads(
        "spans", help="Tagged sentences to learn from. They may come from another corpus than the blocks."
    )
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact = reads("retriever", help="Retriever to start from.")
    index: Artifact = reads("index", help="Index of the blocks, built with that retriever.")
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
    steps: int = setting(help_texts.STEPS, default=200_000)
    batch_size: int = setting("Sentences per step.", default=512)
    lr: float = setting(help_texts.LEARNING_RATE, default=3e-5)
    retriever_lr: float | None = setting(
        "Peak learning rate of the retriever. Default: --lr.", default=None, added_later=True
    )
    layer_decay: float = setting(help_texts.READER_LAYER_DECAY, default=1.0, added_later=True)
    dropout: float | None = setting(
        "Dropout of retriever and reader, saved with them. Default: each one's own.", default=None, added_later=True
    )
    warmup: int | None = setting(help_texts.WARMUP, default=None)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="bert")
    candidates: int = setting("Candidates per query, the null document included.", default=8)
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
    official: tuple[PretrainDeviation, ...] = setting(explained(PretrainDeviation), default=(), added_later=True)
    refresh: Literal["background", "lockstep", "inline", "never"] = setting(
        "What refreshes the index. background: another process, as fast as it can. lockstep: another process, and each index goes "
        "into use one refresh period after its snapshot, so that no delay changes the result. inline: this process. never: nothing.",
        default="background",
    )
    refresh_every: int | Literal["auto"] = setting(
        "Number of steps between snapshots for the index refresh. auto: a snapshot when the embeddings of the blocks have drifted by"
        " --refresh-drift.",
        default=500,
    )
    refresh_drift: float = setting(
        "With --refresh-every auto: drift since the last snapshot at which the next is due, 1 minus the mean cosine.",
        default=0.001,
        added_later=True,
    )
    seed: int = setting(help_texts.SEED, default=0)
    max_index_age: int = runtime(
        "Largest age of the index, in steps, before training waits; 0 means three refresh periods, with auto no limit.",
        default=0,
    )
    when_stale: Literal["wait", "fail", "continue"] = runtime(
        "What to do at that age. wait: for a fresher index. fail: save a checkpoint and stop with exit code 5. continue: train on "
        "with a warning. With --refresh lockstep and inline, training always waits.",
        default="wait",
    )
    refresh_device: str = runtime(
        "Device of the refresher of background and lockstep: auto, cpu or cuda:N. elsewhere: you start `realmctl refresh` yourself.",
        default="auto",
    )
    micro_batch: int = runtime("Sentences computed at once; 0 means the whole batch.", default=0)
    index_shards: bool = runtime(help_texts.INDEX_SHARDS, default=False)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500)
    stop_on: tuple[AlarmName, ...] = runtime(
        "Alarms at which the run stops with exit code 6 and keeps its checkpoint: one or more names, separated by commas.",
        default=(),
    )
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def check(self) -> None:
        if min(self.steps, self.batch_size, self._fewest_steps) < 1 or self.candidates < 2:
            raise ConfigError(
                "--steps, --batch-size and --refresh-every must be at least 1, --candidates at least 2: with a single candidate there is nothing to learn."
            )
        if self.refresh == "lockstep" and self.refresh_every == "auto":
            raise ConfigError("--refresh lockstep needs a number of steps: --refresh-every auto follows the drift.")
        if not self.refresh_drift > 0:
            raise ConfigError(f"--refresh-drift {self.refresh_drift:g} must be above 0.")
        if self.max_index_age and self.max_index_age < self._fewest_steps:
            raise ConfigError(
                f"--max-index-age {self.max_index_age} is below --refresh-every {self.refresh_every}: training would wait for an index that nothing builds."
            )
        if self.when_stale != "wait" and self.refresh != "background":
            raise ConfigError(
                f"--when-stale {self.when_stale} is for --refresh background. With --refresh {self.refresh} no index becomes too old."
            )
        retriever_lr_multiplier(self.lr, self.retriever_lr)
        require_layer_decay(self.layer_decay)
        require_dropout(self.dropout)
        if self.micro_batch < 0:
            raise ConfigError(f"--micro-batch {self.micro_batch}: use 1 or more, or 0 for the whole batch.")
        require_same_vocabulary(self.blocks, self.spans, self.retriever)
        require_titles(self.blocks)
        if "recall_lost" in self.stop_on and self.recall_questions is None:
            raise ConfigError("--stop-on recall_lost needs --recall-questions FILE, whose recall it watches.")
        require_descent(self.index, self.blocks, self.retriever)

    @property
    def _fewest_steps(self) -> int:
        """Fewest steps between two snapshots."""
        return 1 if self.refresh_every == "auto" else self.refresh_every

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.index.index_type import open_index
        from realmctl.models.precision import pick_device
        from realmctl.models.reader import Reader
        from realmctl.models.retriever import Retriever
        from realmctl.retrieval.initial_encoder import starting_bert
        from realmctl.training.index_shards import open_own_shard
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.refresh.chosen import counted_refreshes, journal_of
        from realmctl.training.refresh.current_index import CurrentIndex

        retriever = Retriever.load(self.retriever.path, self.dropout)
        reader = Reader.from_masked_lm(starting_bert(self.encoder, self.bert, self.blocks, self.seed, self.dropout))
        folder = self._refresh_folder(out)
        if self.refresh != "never" and processes.is_first() and self._fewest_steps >= self.steps:
            warn(
                f"--refresh-every {self.refresh_every}, --steps {self.steps}: the index is not refreshed while training. Use a "
                "smaller --refresh-every, or --refresh never to say that this is meant."
            )
        refresh = self._refresh(out, folder)
        try:
            opener = open_own_shard if self.index_shards else open_index
            snapshot = self.retriever if "snapshot-queries" in self.official else None
            current = CurrentIndex(
                self.index,
                refresh,
                str(pick_device(self.device)),
                snapshot,
                opener=opener,
                journal=journal_of(self.refresh, out),
                when_stale=self.when_stale,
            )
            objective = self._objective(retriever, reader, current)
            metrics = train(objective, Schedule.of(self), Compute.of(self), out, "pretrain")
        finally:
            refresh.close()
        if not processes.is_first():  # the first process embeds the blocks with the final retriever
            return metrics
        refreshes = counted_refreshes(out.file("metrics.jsonl"), self.refresh, self._fewest_steps, self.steps)
        index = self._publish(out, folder, retriever, reader)
        alarms = objective.alarms.counts
        return {**metrics, **self._last_measures(out, objective, index), "refreshes": refreshes, "alarms": alarms}

    def _refresh_folder(self, out: Writer) -> RefreshFolder:
        from realmctl.training.refresh.chosen import placed_folder

        return placed_folder(out, self.blocks, self.index, self.precision, "snapshot-queries" in self.official)

    def _refresh(self, out: Writer, folder: RefreshFolder) -> Refresh:
        from realmctl.training.checkpoint import saved_states
        from realmctl.training.refresh.chosen import RefreshPlaces, chosen_refresh
        from realmctl.training.refresh.current_index import steps_held
        from realmctl.training.refresh.pace import pace_of

        checkpoints = out.scratch("checkpoints")

        def held() -> list[int]:
            return steps_held(saved_states(checkpoints))

        max_age = self.max_index_age or (self.steps if self.refresh_every == "auto" else 3 * self.refresh_every)
        places = RefreshPlaces(
            folder, self._retriever_origin(out), tokenizer_folder(self.blocks), self.device, self.refresh_device
        )

        def pace() -> Pace:
            return pace_of(
                self.refresh_every, self.refresh_drift, self.retriever, self.blocks, self.device, self.precision
            )

        return chosen_refresh(self.refresh, places, pace, held, max_age, self._fewest_steps)

    def _retriever_origin(self, out: Writer) -> Origin:
        """Return the origin of the snapshots and of the final retriever: this run's recipe."""
        return dataclasses.replace(
            out.origin, kind="retriever", lineage={**out.origin.lineage, "blocks": self.blocks.content}
        )

    def _objective(self, retriever: Retriever, reader: Reader, current: CurrentIndex) -> PretrainObjective:
        from realmctl.corpus.corpus import Corpus
        from realmctl.questions.questions import read_questions
        from realmctl.retrieval.initial_encoder import packer_of, tokenizer_of
        from realmctl.spans.tagged_queries import TaggedQueries
        from realmctl.training.monitoring.alarms import Alarms, rules
        from realmctl.training.monitoring.recall_questions import RecallQuestions
        from realmctl.training.objectives.pretrain import PretrainObjective
        from realmctl.training.objectives.pretrain_parts import PretrainOptions

        queries, corpus, collator = TaggedQueries(self.spans), Corpus(self.blocks), packer_of(tokenizer_of(self.blocks))
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

    def _publish(self, out: Writer, folder: RefreshFolder, retriever: Retriever, reader: Reader) -> Artifact:
        """Write retriever, reader and the index of that retriever (the last refresh). Returns the index."""
        from realmctl.training.refresh.index_maker import IndexMaker, write_retriever

        tokenizer = tokenizer_folder(self.blocks)
        last = write_retriever(
            out.path / "retriever", self._retriever_origin(out), retriever.cpu(), tokenizer, {"step": self.steps}
        )
        with writing(out.path / "reader", dataclasses.replace(out.origin, kind="reader")) as part:
            reader.cpu().save(part.path)
            part.copy_folder(".", tokenizer)
        return IndexMaker(folder.request(), self.device).make(last, out.path / "index")

    def _last_measures(self, out: Writer, objective: PretrainObjective, index: Artifact) -> dict[str, float]:
        """Measure the final retriever and index, and append the numbers to metrics.jsonl."""
        from realmctl.index.index_type import open_index
        from realmctl.models.precision import pick_device

        if objective.recall_questions is None:
            return {}
        device = pick_device(self.device)  # `_publish` moved the retriever to the CPU
        objective.retriever.to(device)
        found = objective.published(open_index(index.path, str(device)))
        with out.file("metrics.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"step": self.steps, **found}) + "\n")
        return found
