"""Trainings of a retriever: `ict-init`, `spider-init` and `dpr-finetune`."""

from __future__ import annotations

from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.artifacts.description import Pooling, describe_encoder
from realmctl.deviations import IctDeviation, explained
from realmctl.errors import ConfigError
from realmctl.log import warn
from realmctl.pipeline import help_texts, reads, runtime, setting
from realmctl.training.names import RANDOM, projection_names
from realmctl.training.settings.base import LARGEST_BATCH, TrainSettings
from realmctl.training.settings.cloze import ClozeSettings
from realmctl.training.settings.start import WarmStartSettings


class ContrastSettings(TrainSettings):
    """Contrast within a batch: each query has to find its block among those of the others."""

    distill_start: float = setting(help_texts.DISTILL_START, default=0.0, at_least=0, at_most=1e3, advanced=True)
    micro_batch: int = runtime(help_texts.CONTRAST_MICRO_BATCH, default=0, at_least=0)


NEW_RETRIEVER = {
    "projection": 128,
    "query_length": 64,
    "projection_head": "layer-norm",
    "projection_init": RANDOM,
    "projection_norm_eps": 1e-12,
    "towers": "shared",
}
"""What a new retriever has where nothing else is asked for."""


class RetrieverTrainingSettings(ContrastSettings, WarmStartSettings):
    """A retriever, new or given, trained by contrast within a batch of blocks."""

    steps: int = setting("Training steps. 0 saves the initial weights.", default=100_000, at_least=0)
    batch_size: int = setting(
        "Queries per step, each with its blocks; the other blocks of the batch are the negatives.",
        default=1024,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    projection: int | None = setting(
        "Width of the embeddings, in numbers. Default: 128, or the retriever's.",
        default=None,
        at_least=1,
        at_most=65_536,
    )
    projection_head: Literal["layer-norm", "plain", "none"] | None = setting(
        "What makes an embedding of the pooled state. layer-norm: a linear layer and a layer norm, as in REALM. plain: a linear layer. none: nothing. Default: layer-norm, or the retriever's.",
        default=None,
        advanced=True,
    )
    query_length: int | None = setting(
        "Longest query in wordpieces, [CLS] and [SEP] included. Default: 64, or the retriever's.",
        default=None,
        at_least=3,
        advanced=True,
    )
    projection_init: str | None = setting(
        "Projection at the start. random: random numbers. pca: the principal components of the blocks' vectors. Default: random, or the retriever's.",
        default=None,
        choices=projection_names,
        advanced=True,
    )
    scale: float | None = setting(
        "Factor between an inner product and the cosine at the start. Default: the width of the embeddings, or the retriever's.",
        default=None,
        at_least=1e-6,
        at_most=1e6,
        advanced=True,
    )
    pooling: Pooling | None = setting(
        "What is projected. pooler: the output of BERT's tanh pooler. cls: the state of [CLS]. mean: the mean over the tokens. Default: the retriever's, or what encoder.json says, otherwise pooler.",
        default=None,
    )
    projection_norm_eps: float | None = setting(
        "Epsilon of the projection's layer norm. The published weights have 1e-12, the open ICT code has 1e-3. Default: 1e-12, or "
        "the retriever's.",
        default=None,
        at_least=1e-30,
        below=1,
        advanced=True,
    )
    towers: Literal["shared", "separate"] | None = setting(
        "shared: one encoder for queries and blocks. separate: two encoders that start equal. Default: shared, or the retriever's.",
        default=None,
        advanced=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retriever is not None:
            return
        bare = self.projection_head == "none"
        if bare and (self.projection is not None or self.projection_init not in (None, RANDOM)):
            raise ConfigError(
                "--projection-head none leaves out the projection. Leave out --projection and --projection-init too."
            )
        for name, value in NEW_RETRIEVER.items():
            if getattr(self, name) is None and not (bare and name == "projection"):
                object.__setattr__(self, name, value)
        folder = self.trained_folder
        if self.pooling is None and (folder is None or folder.exists()):  # else `localised` fetches the folder first
            object.__setattr__(self, "pooling", self.pooling_of_the_encoder or "pooler")

    @property
    def pooling_of_the_encoder(self) -> Pooling | None:
        """The pooling that the encoder was trained for; None where it does not say."""
        described = describe_encoder(self.trained_folder) if self.trained_folder else None
        return described.pooling if described else None

    def check(self) -> None:
        """Warn when the encoder was trained for another pooling. Raise ConfigError for settings that a given retriever decides."""
        self.refuse_with_retriever("encoder", "bert", *NEW_RETRIEVER, "scale", "pooling")
        if self.retriever is None and (described := self.pooling_of_the_encoder) not in (None, self.pooling):
            warn(
                f"--pooling {self.pooling}: the encoder was trained for --pooling {described}. Another pooling usually retrieves "
                f"worse. Use --pooling {described}, or leave the option out."
            )


class IctSettings(RetrieverTrainingSettings, ClozeSettings):
    """The inverse cloze task."""

    batch_size: int = setting(
        "Pairs of a sentence and a block per step; the other blocks of the batch are the negatives.",
        default=4096,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    mask_rate: float = setting(
        "Share of the pairs in which the sentence is removed from its block.",
        default=0.9,
        at_least=0,
        at_most=1,
    )
    null_share: float = setting(
        "Share of the sentences that may not choose their block, so that the null document is right. 0 is ORQA's task.",
        default=0.0,
        at_least=0,
        below=1,
        advanced=True,
    )
    held_out: Artifact | None = reads(
        "queries",
        help="With --cloze-recall: questions of generate-queries. Their documents are left out of the training, and weights are kept only if these questions show a gain too.",
        explicit_only=True,
        default=None,
    )
    official: tuple[IctDeviation, ...] = setting(explained(IctDeviation), default=(), advanced=True)

    def check(self) -> None:
        super().check()
        if self.held_out is not None and not self.cloze_recall:
            raise ConfigError(
                "--held-out needs --cloze-recall, beside which its questions measure. Name --cloze-recall too, or leave out --held-out."
            )

    @property
    def questions(self) -> Artifact | None:
        return self.held_out
