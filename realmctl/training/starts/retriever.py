"""What the stages that make a retriever have in common: the BERT, the projection, the schedule, and the run.

A stage says what its batch is (`objective`). The rest is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, tokenizer_folder
from realmctl.artifacts.description import describe_encoder
from realmctl.log import warn
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.training_stage import TrainingStage

if TYPE_CHECKING:
    from realmctl.corpus.corpus import Corpus
    from realmctl.models.inputs import Collator
    from realmctl.models.retriever import Retriever
    from realmctl.training.objectives.in_batch import InBatchContrast


class RetrieverStart(TrainingStage, abstract=True):
    """Base of the stages that train a retriever by contrast within a batch of blocks."""

    makes = "retriever"
    headline = ("loss", "accuracy", "seconds_per_step")

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    encoder: Artifact | None = reads(
        "encoder", "reader", help="Encoder that the retriever starts from.", optional=True, replaced_by=("bert",)
    )
    bert: str | None = source(
        "BERT that the retriever starts from, instead of --encoder: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    steps: int = setting("Training steps. 0 keeps the untrained start.", default=100_000, at_least=0)
    batch_size: int = setting(
        "Queries per step, each with its blocks; the other blocks of the batch are the negatives.",
        default=1024,
        at_least=2,
    )
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-4, above=0)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="bert")
    projection: int = setting("Width of the embeddings, in numbers.", default=128, at_least=1, at_most=65_536)
    query_length: int = setting("Longest query in wordpieces, [CLS] and [SEP] included.", default=64, at_least=3)
    projection_init: Literal["random", "pca"] = setting(
        "Projection at the start. random: random numbers. pca: the principal components of the blocks' vectors, which keep what "
        "a sentence encoder knows.",
        default="random",
    )
    scale: float | None = setting(
        "Factor between an inner product and the cosine at the start. Default: the width of the embeddings.",
        default=None,
        above=0,
    )
    pooling: Literal["pooler", "cls", "mean"] | None = setting(
        "What is projected. pooler: the output of BERT's tanh pooler. cls: the state of [CLS] as it is, as Condenser does. "
        "mean: the mean over the tokens, as sentence encoders do. Default: what the encoder's encoder.json says (cls for one "
        "that condenser-init made), otherwise pooler.",
        default=None,
    )
    projection_norm_eps: float = setting(
        "Epsilon of the projection's layer norm. The published weights have 1e-12, the open ICT code has 1e-3.",
        default=1e-12,
        above=0,
        below=1,
    )
    towers: Literal["shared", "separate"] = setting(
        "shared: one encoder for queries and blocks. separate: two encoders that start equal.", default="shared"
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime(help_texts.CONTRAST_MICRO_BATCH, default=0, at_least=0)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        folder = self._trained_folder()
        if self.pooling is None and (folder is None or folder.exists()):  # else `localised` fetches the folder first
            object.__setattr__(self, "pooling", self._pooling_of_the_encoder() or "pooler")

    def _trained_folder(self) -> Path | None:
        """The folder of the BERT to start from; None for a BERT from scratch."""
        if self.encoder is not None:
            return self.encoder.path
        return Path(self.bert) if self.bert and not self.bert.startswith("scratch:") else None

    def _pooling_of_the_encoder(self) -> Literal["pooler", "cls", "mean"] | None:
        """The pooling that the encoder was trained for; None where it does not say."""
        folder = self._trained_folder()
        described = describe_encoder(folder) if folder else None
        return described.pooling if described else None

    def check(self) -> None:
        if (described := self._pooling_of_the_encoder()) not in (None, self.pooling):
            warn(
                f"--pooling {self.pooling}: the encoder was trained for --pooling {described}. Another pooling usually retrieves "
                f"worse. Use --pooling {described}, or leave the option out."
            )

    def objective(self, retriever: Retriever, corpus: Corpus, collator: Collator) -> InBatchContrast:
        """Return what the stage minimises."""
        raise NotImplementedError

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.corpus.corpus import Corpus
        from realmctl.models.inputs import Collator
        from realmctl.models.precision import seed_everything
        from realmctl.models.retriever import Retriever
        from realmctl.tokens import wordpiece
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.starts.closed_form import start_with_pca
        from realmctl.training.starts.encoder import starting_bert

        seed_everything(self.seed)  # the projection is always new
        start = starting_bert(self.encoder, self.bert, self.blocks, self.seed)
        corpus = Corpus(self.blocks)
        retriever = Retriever.from_bert(
            start.bert,
            projection=self.projection,
            query_length=self.query_length,
            pooling=self.pooling or "pooler",
            towers=self.towers,
            block_length=corpus.max_wordpieces,
            norm_eps=self.projection_norm_eps,
        )
        collator = Collator.of(wordpiece.load(self.blocks.path))
        if self.projection_init == "pca":
            start_with_pca(
                retriever,
                corpus,
                collator,
                seed=self.seed,
                scale=self.scale,
                device=self.device,
                precision=self.precision,
            )
        elif self.scale is not None:
            retriever.start_projection(scale=self.scale)
        metrics: Mapping[str, Any] = {"steps": 0}
        if self.steps:
            schedule = Schedule.of(self)
            compute = Compute.of(self)
            metrics = train(self.objective(retriever, corpus, collator), schedule, compute, out, self.command())
        retriever.cpu().save(out.path)
        out.copy_folder("tokenizer", tokenizer_folder(self.blocks))
        return metrics
