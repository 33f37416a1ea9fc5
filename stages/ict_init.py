"""`realmctl ict-init`: a retriever's warm start by the inverse cloze task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from realmctl.artifacts import Artifact, Writer
from realmctl.errors import ConfigError
from realmctl.stage import Stage, reads, runtime, setting, source


class IctInit(Stage):
    """Train a retriever on the inverse cloze task: find the block a sentence was taken from.

    Under torchrun each process takes a part of the batch, and the negatives are still the blocks of the whole batch.
    """

    makes = "retriever"
    resumable = True
    parallel = True

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    encoder: Artifact | None = reads(
        "encoder", "reader", help="Encoder to start from.", optional=True, unless=("bert",)
    )
    bert: str | None = source(
        "BERT to start from instead: a folder, a hub id, or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    steps: int = setting("Training steps; 0: keep the untrained start.", default=100_000)
    batch_size: int = setting("Pairs in a step; each other's blocks are the negatives.", default=4096)
    lr: float = setting("Peak learning rate.", default=1e-4)
    warmup: int | None = setting("Warm-up steps; default min(10000, max(100, steps / 10)).", default=None)
    optimizer: Literal["bert", "adamw"] = setting(
        "bert: AdamW as BERT and REALM used it; adamw: betas .9 and .98 with bias correction, for runs of hundreds of steps.",
        default="bert",
    )
    mask_rate: float = setting("How often the sentence is taken out of its block.", default=0.9)
    null_share: float = setting(
        "Share of sentences that may not choose their block, so that the null document is right; 0: ORQA's task.",
        default=0.0,
        later=True,
    )
    projection: int = setting("Width of the embeddings.", default=128)
    query_length: int = setting("Wordpieces of a query, [CLS] and [SEP] included.", default=64)
    projection_init: Literal["random", "pca"] = setting(
        "Projection at the start; pca: the principal components of the blocks' vectors, which keep what a sentence encoder knows.",
        default="random",
        later=True,
    )
    scale: float | None = setting(
        "At the start, make inner products this many times the cosine; default: the projection's width.",
        default=None,
        later=True,
    )
    pooling: Literal["pooler", "cls", "mean"] = setting(
        "BERT's tanh pooler, the raw [CLS] state (Condenser), or the mean over tokens (sentence encoders).",
        default="pooler",
    )
    projection_norm_eps: float = setting(
        "Epsilon of the projection's layer norm: 1e-12 in the published weights, 1e-3 in the open ICT code.",
        default=1e-12,
        later=True,
    )
    towers: Literal["shared", "separate"] = setting("One encoder for queries and blocks, or two.", default="shared")
    seed: int = setting("Seed of everything random.", default=0)
    device: str = runtime("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "Arithmetic; auto is bf16 where the hardware has it.", default="auto"
    )
    checkpoint_every: int = runtime("Steps between checkpoints.", default=500)

    def check(self) -> None:
        if not 0 < self.projection_norm_eps < 1:
            raise ConfigError(f"--projection-norm-eps {self.projection_norm_eps:g} must lie between 0 and 1.")
        if not 0 <= self.null_share < 1:
            raise ConfigError(f"--null-share {self.null_share:g} must be at least 0 and below 1.")
        if self.scale is not None and not 0 < self.scale < float("inf"):
            raise ConfigError(f"--scale {self.scale:g} must be above 0.")
        if self.steps < 0 or self.seed < 0 or self.batch_size < 2 or not 0 <= self.mask_rate <= 1:
            raise ConfigError(
                "--steps and --seed must be at least 0, --batch-size at least 2 (a lone block has no negatives), --mask-rate from 0 to 1."
            )

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.nn.precision import seed_everything
        from realmctl.nn.retriever import Retriever
        from realmctl.retrieval.corpus import Corpus
        from realmctl.retrieval.initial_encoder import packer_of, starting_bert, tokenizer_folder, tokenizer_of
        from realmctl.training.closed_form_starts import start_with_pca
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.objectives.ict import InverseClozeObjective

        seed_everything(self.seed)  # the projection is new, whatever the encoder
        start = starting_bert(self.encoder, self.bert, self.blocks, self.seed)
        retriever = Retriever.from_bert(
            start.bert, projection=self.projection, query_length=self.query_length, pooling=self.pooling, towers=self.towers,
            block_length=int(self.blocks.settings.get("max_wordpieces", 288)), norm_eps=self.projection_norm_eps,
        )  # fmt: skip
        corpus, collator = Corpus(self.blocks), packer_of(tokenizer_of(self.blocks))
        if self.projection_init == "pca":
            start_with_pca(
                retriever, corpus, collator,
                seed=self.seed, scale=self.scale, device=self.device, precision=self.precision,
            )  # fmt: skip
        elif self.scale is not None:
            retriever.start_projection(scale=self.scale)
        metrics: Mapping[str, Any] = {"steps": 0}
        if self.steps:
            objective = InverseClozeObjective(
                retriever, corpus, collator,
                batch_size=self.batch_size, mask_rate=self.mask_rate, null_share=self.null_share, seed=self.seed,
            )  # fmt: skip
            schedule = Schedule(self.steps, self.lr, self.warmup, self.seed, self.optimizer)
            compute = Compute(self.device, self.precision, self.checkpoint_every)
            metrics = train(objective, schedule, compute, out, "ict-init")
        retriever.cpu().save(out.path)
        out.copy_folder("tokenizer", tokenizer_folder(self.blocks))
        return metrics
