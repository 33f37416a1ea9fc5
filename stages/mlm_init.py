"""`realmctl mlm-init`: an encoder's warm start by masked language modelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary
from realmctl.errors import ConfigError
from realmctl.stage import Stage, reads, runtime, setting, source

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from realmctl.training.objectives.mlm import Examples


class MlmInit(Stage):
    """Train an encoder with its masked-language-model head, on plain blocks or as reading practice.

    With --spans, each tagged sentence is read beside the block that restates it, and salient spans are hidden.
    """

    makes = "encoder"
    resumable = True

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    spans: Artifact | None = reads(
        "spans", help="Tagged sentences to read beside blocks; without them, plain blocks.", named=True
    )
    bert: str = source(
        "BERT to start from: a folder, a hub id, or scratch:SIZE (tiny, mini, small, medium, base, or L2-H128-A4).",
        default="scratch:tiny", literals=("scratch:",), hub=True,
    )  # fmt: skip
    head_init: Literal["random", "ridge"] = setting(
        "Head at the start. random: a random one where the BERT has none; ridge: fitted to the states of visible wordpieces, in place of any that it has.",
        default="random", later=True,
    )  # fmt: skip
    steps: int = setting("Training steps; 0, with --head-init ridge: keep the fitted head.", default=10_000)
    batch_size: int = setting("Examples in a step.", default=128)
    lr: float = setting("Peak learning rate.", default=1e-4)
    warmup: int | None = setting("Warm-up steps; default min(10000, max(100, steps / 10)).", default=None)
    optimizer: Literal["bert", "adamw"] = setting(
        "bert: AdamW as BERT and REALM used it; adamw: betas .9 and .98 with bias correction, for runs of hundreds of steps.",
        default="adamw",
    )
    mask_rate: float = setting("Share of wordpieces hidden in plain blocks.", default=0.15)
    practice: Literal["steady", "curriculum"] = setting(
        "With --spans: steady reads blocks that restate the sentence; curriculum begins with pure copying and adds noisy copies, "
        "other blocks, random blocks and null documents.",
        default="steady",
        later=True,
    )
    window: int = setting("Wordpieces of a block's window in the curriculum.", default=64, later=True)
    length: int = setting("Wordpieces of a plain example, [CLS] and [SEP] included.", default=128)
    dropout: float = setting("Dropout of a BERT from scratch; a loaded one keeps its own.", default=0.1)
    seed: int = setting("Seed of everything random.", default=0)
    micro_batch: int = runtime("Examples computed at once; 0 = the whole batch.", default=0)
    device: str = runtime("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "Arithmetic; auto is bf16 where the hardware has it.", default="auto"
    )
    checkpoint_every: int = runtime("Steps between checkpoints.", default=500)

    def check(self) -> None:
        if (
            self.steps < (0 if self.head_init == "ridge" else 1)
            or self.seed < 0
            or self.batch_size < 1
            or not 0 < self.mask_rate < 1
            or not 0 <= self.dropout < 1
            or not 3 <= self.length <= 512
        ):
            raise ConfigError(
                "--steps must be at least 1 (0 with --head-init ridge), --batch-size at least 1, --seed at least 0, --mask-rate between 0 and 1, --dropout from 0 to below 1, --length from 3 to 512."
            )
        if self.window < 8 or (self.practice == "curriculum" and self.spans is None):
            raise ConfigError(
                f"--practice curriculum needs --spans, and --window {self.window} must be at least 8 wordpieces."
            )
        if self.spans:
            require_same_vocabulary(self.blocks, self.spans)

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.nn.bert.encoder import save_masked_lm
        from realmctl.retrieval.corpus import Corpus
        from realmctl.retrieval.initial_encoder import packer_of, starting_bert, tokenizer_folder, tokenizer_of
        from realmctl.training.closed_form_starts import start_with_ridge_head

        mlm = starting_bert(None, self.bert, self.blocks, self.seed, self.dropout)
        fitted: dict[str, float] = {}
        if self.head_init == "ridge":
            corpus, collator = Corpus(self.blocks), packer_of(tokenizer_of(self.blocks))
            fitted["decoded_at_start"] = start_with_ridge_head(
                mlm, corpus, collator, length=self.length, seed=self.seed, device=self.device, precision=self.precision
            )
        metrics: Mapping[str, Any] = {"steps": 0}
        if self.steps:
            metrics = self._train(mlm, out)
        save_masked_lm(mlm.cpu(), out.path)
        out.copy_folder(".", tokenizer_folder(self.blocks))
        return {**fitted, **metrics}

    def _train(self, mlm: BertForMaskedLM, out: Writer) -> Mapping[str, Any]:
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.objectives.mlm import MlmObjective

        examples = self._examples(mlm.config.vocab_size)
        objective = MlmObjective(
            mlm, examples, batch_size=self.batch_size, micro_batch=self.micro_batch, seed=self.seed, steps=self.steps
        )
        schedule = Schedule(self.steps, self.lr, self.warmup, self.seed, self.optimizer)
        compute = Compute(self.device, self.precision, self.checkpoint_every)
        return {"examples": len(examples), **train(objective, schedule, compute, out, "mlm-init")}

    def _examples(self, vocabulary: int) -> Examples:
        from realmctl.retrieval.corpus import Corpus
        from realmctl.retrieval.initial_encoder import continuing_words, packer_of, tokenizer_of
        from realmctl.retrieval.tagged_queries import TaggedQueries
        from realmctl.training.objectives.curriculum import Curriculum
        from realmctl.training.objectives.mlm import PlainBlocks, ReadingPractice
        from realmctl.training.objectives.pairing import partners

        corpus, collator = Corpus(self.blocks), packer_of(tokenizer_of(self.blocks))
        if self.spans is None:
            return PlainBlocks(corpus, collator, mask_rate=self.mask_rate, length=self.length, vocabulary=vocabulary)
        queries = TaggedQueries(self.spans)
        found = partners(queries, corpus)
        if self.practice == "curriculum":
            words = continuing_words(tokenizer_of(self.blocks))
            return Curriculum(queries, corpus, found, collator, continues_V=words, window=self.window)
        lengths = queries.query_length, int(self.blocks.settings.get("max_wordpieces", 288))
        return ReadingPractice(queries, corpus, found, collator, lengths=lengths)
