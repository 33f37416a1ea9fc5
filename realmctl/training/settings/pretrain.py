"""REALM pre-training and its index refresh."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal, Self

from realmctl.artifacts import Artifact
from realmctl.deviations import PretrainDeviation, explained
from realmctl.errors import ConfigError
from realmctl.pipeline import (
    check_refresh_device,
    help_texts,
    reads,
    runtime,
    setting,
    source,
)
from realmctl.spans.settings import MASKINGS
from realmctl.training.monitoring.alarms import AlarmName
from realmctl.training.names import CANDIDATE_SOURCES, NEVER, OBJECTIVES, READERS, RETRIEVER_LOSSES, refresh_names
from realmctl.training.settings.base import LARGEST_BATCH, TrainSettings, rate
from realmctl.training.settings.cloze import ClozeSettings
from realmctl.training.settings.start import BertSettings, ExcludeOwn


class RefreshSettings(TrainSettings):
    """An index that is refreshed while training runs: the index and its parts, and how it is kept fresh."""

    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact = reads("retriever", help="Retriever to start from.")
    index: Artifact = reads("index", help="Index of the blocks, built with that retriever.")
    refresh: str = setting(
        "What refreshes the index. background: another process, as fast as it can. lockstep: another process, deterministic: each "
        "index is swapped in exactly one period after its snapshot. inline: this process. never: nothing.",
        default="background",
        choices=refresh_names,
    )
    refresh_every: int = setting("Number of steps between snapshots for the index refresh.", default=500, at_least=1)
    max_index_age: int = runtime(
        "Largest age of the index, in steps, before training waits; 0 means three refresh periods.",
        default=0,
        at_least=0,
        advanced=True,
    )
    refresh_device: str = runtime(
        "Device of the refresher of background and lockstep: auto, cpu or cuda:N. elsewhere: you start `realmctl refresh` yourself.",
        default="auto",
        check=check_refresh_device,
        advanced=True,
    )
    index_shards: bool = runtime(help_texts.INDEX_SHARDS, default=False, advanced=True)

    def without_refresh(self) -> Self:
        """Return the same settings with an index that stays as it is."""
        return dataclasses.replace(self, refresh=NEVER, max_index_age=0)

    def with_batch(self, examples: int) -> Self:
        return super(RefreshSettings, self.without_refresh()).with_batch(examples)

    @property
    def max_age(self) -> int:
        """Age of the index in steps, beyond which training does not go on as before."""
        return self.max_index_age or 3 * self.refresh_every

    def check(self) -> None:
        if self.max_index_age and self.max_index_age < self.refresh_every:
            raise ConfigError(
                f"--max-index-age {self.max_index_age} is below --refresh-every {self.refresh_every}: training would wait for an "
                "index that nothing builds."
            )


class PretrainSettings(ClozeSettings, RefreshSettings, BertSettings):
    """REALM pre-training. Rooms add options to `pretrain` by subclasses (`realmctl.options.pretrain`)."""

    spans: Artifact = reads(
        "spans",
        help="Tagged sentences to learn from. They may come from another corpus than the blocks.",
    )
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder that the reader starts from.",
        optional=True,
        replaced_by=("bert",),
        default=None,
    )
    reader: str = setting(
        "What reads. masked: REALM's masked language model.", default="masked", choices=READERS.names, advanced=True
    )
    freeze_reader: bool = setting("Let the retriever alone learn.", default=False, advanced=True)
    recall_questions: Path | None = source(
        "File of questions whose recall@1, @5 and @20 is logged whenever the index changes. At most 300 of them are used.",
        default=None,
    )
    steps: int = setting(help_texts.STEPS, default=200_000, at_least=1)
    batch_size: int = setting("Sentences per step.", default=512, at_least=1, at_most=LARGEST_BATCH)
    lr: float = rate(3e-5)
    retriever_lr: float | None = rate(None, "Peak learning rate of the retriever. Default: --lr.", advanced=True)
    layer_decay: float = setting(help_texts.READER_LAYER_DECAY, default=1.0, above=0, at_most=1, advanced=True)
    dropout: float | None = setting(
        "Dropout of retriever and reader, saved with them. Default: each one's own.",
        default=None,
        at_least=0,
        below=1,
        advanced=True,
    )
    candidates: int = setting("Candidates per query, the null document included.", default=8, at_least=2)
    null_document: bool = setting(
        "Make the null document candidate 0. Without it, all candidates are blocks, and the null document only serves to measure"
        " retrieval_utility.",
        default=True,
        advanced=True,
    )
    exclude_own: ExcludeOwn = setting(
        "Which blocks are no candidates for a sentence. block: the one that holds it. document: all of its document. title, source: all with its title, or its id but for a number at the end. nothing: none is left out.",
        default="block",
        advanced=True,
    )
    marginal: Literal["token", "sequence"] | None = setting(
        "Marginal likelihood. token: of each wordpiece (official code). sequence: of the whole span (paper). Default: token.",
        default=None,
        advanced=True,
    )
    objective: str = setting(
        "What a step draws and computes. realm: REALM's.", default="realm", choices=OBJECTIVES.names, advanced=True
    )
    retriever_loss: str = setting(
        "What the retriever learns. marginal: to make what is hidden likely (REALM).",
        default="marginal",
        choices=RETRIEVER_LOSSES.names,
        advanced=True,
    )
    masking: str = setting(
        "What is hidden. salient: a salient span. random-span: a random span of the same length. random-uniform: random wordpieces.",
        default="salient",
        choices=MASKINGS.names,
    )
    candidates_from: str = setting(
        "Where candidates come from. index: the index in use (REALM).",
        default="index",
        choices=CANDIDATE_SOURCES.names,
        advanced=True,
    )
    official: tuple[PretrainDeviation, ...] = setting(explained(PretrainDeviation), default=(), advanced=True)
    micro_batch: int = runtime("Examples computed at once; 0 means the whole batch.", default=0, at_least=0)
    stop_on: tuple[AlarmName, ...] = runtime(help_texts.STOP_ON, default=(), advanced=True)

    def one_step(self) -> Self:
        """Return the same settings with one step, without a refresh and without measurements of recall."""
        still = dataclasses.replace(self.without_refresh(), recall_questions=None)
        return super(PretrainSettings, still).one_step()

    @property
    def per_token(self) -> bool:
        """Whether each hidden token has a marginal likelihood of its own."""
        return (self.marginal or "token") == "token"

    @property
    def reader_name(self) -> str:
        """The name of the reader."""
        return self.reader

    @property
    def freezes_reader(self) -> bool:
        """Whether the reader keeps its weights."""
        return self.freeze_reader
