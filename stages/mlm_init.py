"""`realmctl mlm-init`: train an encoder by masked language modelling, as a warm start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary, tokenizer_folder
from realmctl.artifacts.description import ENCODER, EncoderDescription, describe_encoder, write_description
from realmctl.errors import ConfigError
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.training_stage import TrainingStage

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from realmctl.training.objectives.mlm import Examples


class MlmInit(TrainingStage):
    """Train an encoder and its masked-language-model head, on blocks or as reading practice.

    With --spans each tagged sentence is read together with the block that restates it, and salient spans are hidden.
    """

    makes = "encoder"
    headline = ("loss", "accuracy", "seconds_per_step")

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    spans: Artifact | None = reads(
        "spans", help="Tagged sentences for reading practice. Default: train on blocks alone.", explicit_only=True
    )
    bert: str = source(
        "BERT to start from: a folder, a hub id, or scratch:SIZE, where SIZE is tiny, mini, small, medium, base or such as L2-H128-A4.",
        default="scratch:tiny",
        literals=("scratch:",),
        hub=True,
    )
    head_init: Literal["random", "ridge"] = setting(
        "Masked-language-model head at the start. random: random numbers where the BERT has no head. ridge: fitted to the states "
        "of visible wordpieces, in place of any head that the BERT has.",
        default="random",
    )
    steps: int = setting("Training steps. 0 with --head-init ridge keeps the fitted head.", default=10_000, at_least=0)
    batch_size: int = setting("Examples per step.", default=128, at_least=1)
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-4, above=0)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    layer_decay: float = setting(help_texts.LAYER_DECAY, default=1.0, above=0, at_most=1)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    stop_at_accuracy: float | None = setting(
        "Stop when this share of the hidden wordpieces is filled in correctly, in the mean of the last 50 steps. --steps is then the "
        "most. Default: take all steps.",
        default=None,
        above=0,
        at_most=1,
    )
    mask_rate: float = setting(
        "Share of the wordpieces that are hidden, without --spans.", default=0.15, above=0, below=1
    )
    practice: Literal["steady", "curriculum"] = setting(
        "Kind of reading practice with --spans. steady: blocks that restate the sentence. curriculum: copies of the sentence "
        "first, then noisy copies, other blocks, random blocks and null documents.",
        default="steady",
    )
    window: int = setting("Window of a block in wordpieces, with --practice curriculum.", default=64, at_least=8)
    length: int = setting(
        "Longest example in wordpieces without --spans, [CLS] and [SEP] included.", default=128, at_least=3, at_most=512
    )
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. It is saved with the encoder, so later stages train with it too. Default: the loaded "
        "BERT's own, and 0.1 from scratch. Reading practice of a few hundred steps learns faster with 0.",
        default=None,
        at_least=0,
        below=1,
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime("Examples computed at once; 0 means the whole batch.", default=0, at_least=0)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def check(self) -> None:
        if self.steps == 0 and self.head_init != "ridge":
            raise ConfigError("--steps 0 changes nothing. Add --head-init ridge, which fits a head, or take steps.")
        if self.practice == "curriculum" and self.spans is None:
            raise ConfigError("--practice curriculum needs --spans, the sentences to practise on.")
        if self.practice == "curriculum" and self.stop_at_accuracy is not None:
            raise ConfigError(
                "--stop-at-accuracy does not work with --practice curriculum: its first part is easier, so the accuracy there says "
                "nothing about the harder blocks. Choose --steps instead."
            )
        if self.spans:
            require_same_vocabulary(self.blocks, self.spans)

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.corpus.corpus import Corpus
        from realmctl.models.bert.encoder import save_masked_lm
        from realmctl.models.inputs import Collator
        from realmctl.tokens import wordpiece
        from realmctl.training.starts.closed_form import start_with_ridge_head
        from realmctl.training.starts.encoder import starting_bert

        mlm = starting_bert(None, self.bert, self.blocks, self.seed, self.dropout)
        fitted: dict[str, float] = {}
        if self.head_init == "ridge":
            corpus, collator = Corpus(self.blocks), Collator.of(wordpiece.load(self.blocks.path))
            fitted["decoded_at_start"] = start_with_ridge_head(
                mlm, corpus, collator, length=self.length, seed=self.seed, device=self.device, precision=self.precision
            )
        metrics: Mapping[str, Any] = {"steps": 0}
        if self.steps:
            metrics = self._train(mlm, out)
        save_masked_lm(mlm.cpu(), out.path)
        if not self.bert.startswith("scratch:") and (before := describe_encoder(Path(self.bert))):
            write_description(out.file(ENCODER), EncoderDescription(pooling=before.pooling))  # the head is out of date
        out.copy_folder(".", tokenizer_folder(self.blocks))
        return {**fitted, **metrics}

    def _train(self, mlm: BertForMaskedLM, out: Writer) -> Mapping[str, Any]:
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.objectives.mlm import MlmObjective

        examples = self._examples(mlm.config.vocab_size)
        objective = MlmObjective(
            mlm,
            examples,
            batch_size=self.batch_size,
            micro_batch=self.micro_batch,
            seed=self.seed,
            steps=self.steps,
            layer_decay=self.layer_decay,
        )
        schedule = Schedule.of(self)
        compute = Compute.of(self)
        return {"examples": len(examples), **train(objective, schedule, compute, out, "mlm-init")}

    def _examples(self, vocabulary: int) -> Examples:
        from realmctl.corpus.corpus import Corpus
        from realmctl.models.inputs import Collator
        from realmctl.spans.tagged_queries import TaggedQueries
        from realmctl.tokens import wordpiece
        from realmctl.training.data.masked_blocks import PlainBlocks
        from realmctl.training.data.reading_practice import PARTNERS, Curriculum, ReadingPractice, partners

        corpus, collator = Corpus(self.blocks), Collator.of(wordpiece.load(self.blocks.path))
        if self.spans is None:
            return PlainBlocks(corpus, collator, mask_rate=self.mask_rate, length=self.length, vocabulary=vocabulary)
        queries = TaggedQueries(self.spans)
        if self.practice == "curriculum":
            found = partners(queries, corpus, PARTNERS)
            words = wordpiece.load(self.blocks.path).continues
            return Curriculum(queries, corpus, found, collator, continues_V=words, window=self.window)
        lengths = queries.query_length, corpus.max_wordpieces
        return ReadingPractice(queries, corpus, partners(queries, corpus)[:, 0], collator, lengths=lengths)
