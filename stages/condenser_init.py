"""`realmctl condenser-init`: an encoder's warm start by Condenser or coCondenser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer
from realmctl.errors import ConfigError
from realmctl.log import say, warn
from realmctl.stage import Stage, reads, runtime, setting, source

if TYPE_CHECKING:
    from realmctl.nn.condenser import Condenser
    from realmctl.training.objectives.whole_words import MaskedPassages


class CondenserInit(Stage):
    """Train an encoder whose [CLS] state sums a passage up: Condenser, or coCondenser with --contrastive.

    A short head fills masks from the last [CLS] state and early token states. Later stages read the backbone alone; the
    head is kept beside it, so that another condenser-init goes on from both. Under torchrun each process takes a part of
    the batch, and spans are compared with the spans of all processes.
    """

    makes = "encoder"
    headline = ("loss", "accuracy", "seconds_per_step")
    resumable = True
    parallel = True

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    encoder: Artifact | None = reads(
        "encoder",
        help="Encoder to start from; one of condenser-init brings its head.",
        optional=True,
        replaced_by=("bert",),
    )
    bert: str | None = source(
        "BERT to start from instead: a folder, a hub id, or scratch:SIZE. A folder of the public Condenser code brings its head.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    contrastive: bool = setting("Also contrast two spans of each document (coCondenser).", default=False)
    skip_from: int | None = setting(
        "Layer whose token states the head reads, 0 = the embeddings. Default: the middle layer, 6 of 12.", default=None
    )
    head_layers: int = setting("Layers of the head.", default=2)
    late_mlm: bool = setting("Also predict the masked wordpieces from the last layer.", default=True)
    steps: int = setting("Training steps.", default=10_000)
    batch_size: int = setting("Blocks in a step; with --contrastive documents, two spans each.", default=128)
    lr: float = setting("Peak learning rate.", default=1e-4)
    warmup: int | None = setting("Warm-up steps. Default: a tenth of --steps.", default=None)
    optimizer: Literal["bert", "adamw"] = setting(
        "bert: AdamW as BERT used it; adamw: betas .9 and .98 with bias correction, for runs of hundreds of steps.",
        default="adamw",
    )
    mask_rate: float = setting("Share of the wordpieces to mask, by whole words.", default=0.15)
    length: int = setting("Wordpieces of an example, [CLS] and [SEP] included.", default=128)
    seed: int = setting("Seed of everything random.", default=0)
    micro_batch: int = runtime("Blocks computed at once; 0 = the whole batch.", default=0)
    cache_chunk: int = runtime(
        "With --contrastive: spans computed at once by the gradient cache; 0 = the whole batch.", default=0
    )
    device: str = runtime("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "Arithmetic; auto is bf16 where the hardware has it.", default="auto"
    )
    checkpoint_every: int = runtime("Steps between checkpoints.", default=500)

    def check(self) -> None:
        least = {"steps": 1, "batch-size": 2 if self.contrastive else 1, "head-layers": 1}
        for name, minimum in least.items():
            value = getattr(self, name.replace("-", "_"))
            if value < minimum:
                raise ConfigError(f"--{name} is {value}; it must be at least {minimum}.")
        if not 0 < self.mask_rate < 1 or not 3 <= self.length <= 512:
            raise ConfigError(
                f"--mask-rate {self.mask_rate:g} must lie between 0 and 1, and --length {self.length} between 3 and 512."
            )
        if self.cache_chunk < 0 or self.micro_batch < 0:
            raise ConfigError("--cache-chunk and --micro-batch must not be below 0.")
        if (self.contrastive and self.micro_batch) or (self.cache_chunk and not self.contrastive):
            raise ConfigError(
                "--micro-batch divides masked passages and --cache-chunk divides the spans of --contrastive. "
                "Use --cache-chunk with --contrastive, and --micro-batch without."
            )

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.nn.bert.encoder import save_masked_lm
        from realmctl.retrieval.initial_encoder import tokenizer_folder
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.objectives.condenser import CondenserObjective, CondenserOptions

        model, examples = self._model(), self._examples()
        options = CondenserOptions(
            batch_size=self.batch_size,
            seed=self.seed,
            late_mlm=self.late_mlm,
            contrastive=self.contrastive,
            chunk=self.cache_chunk or self.micro_batch,
        )
        objective = CondenserObjective(model, examples, options)
        warmup = max(1, self.steps // 10) if self.warmup is None else self.warmup
        schedule = Schedule(steps=self.steps, lr=self.lr, warmup=warmup, seed=self.seed, optimizer=self.optimizer)
        compute = Compute(device=self.device, precision=self.precision, checkpoint_every=self.checkpoint_every)
        metrics = train(objective, schedule, compute, out, "condenser-init")
        model.cpu()
        save_masked_lm(model.mlm, out.path)
        model.save_head(out.path)
        described = {"pooling": "cls", "skip_from": model.skip_from, "head_layers": self.head_layers}
        out.file("encoder.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        out.copy_folder(".", tokenizer_folder(self.blocks))
        return {"examples": len(examples), **metrics}

    def _model(self) -> Condenser:
        from realmctl.nn.condenser import Condenser
        from realmctl.nn.precision import seed_everything
        from realmctl.retrieval.initial_encoder import starting_bert

        mlm = starting_bert(self.encoder, self.bert, self.blocks, self.seed)
        seed_everything(self.seed)  # the head is new, whatever the encoder
        middle = mlm.config.num_hidden_layers // 2
        model = Condenser(
            mlm, skip_from=middle if self.skip_from is None else self.skip_from, head_layers=self.head_layers
        )
        folder = self._folder()
        if folder is not None and model.load_head(folder):
            say(f"condenser-init: going on with the Condenser head of {folder}")
        elif folder is not None:
            warn(
                f"{folder} has no Condenser head, so a fresh random head starts on a trained backbone. The authors of Condenser "
                "warn that this can corrupt the backbone. For coCondenser start from an encoder that condenser-init made."
                if self.contrastive
                else f"{folder} has no Condenser head; a fresh random head starts on the trained backbone. Keep the warm-up long."
            )
        return model

    def _folder(self) -> Any:
        """The folder of the trained backbone to start from; None for a BERT from scratch."""
        from pathlib import Path

        if self.encoder is not None:
            return self.encoder.path
        return Path(self.bert) if self.bert and not self.bert.startswith("scratch:") else None

    def _examples(self) -> MaskedPassages:
        from realmctl.retrieval.corpus import Corpus
        from realmctl.retrieval.initial_encoder import continuing_words, packer_of, tokenizer_of
        from realmctl.training.objectives.whole_words import (
            MaskedPassages,
            SpanPairs,
            WholeWordMasking,
            rows_by_document,
        )

        tokenizer, corpus = tokenizer_of(self.blocks), Corpus(self.blocks)
        collator = packer_of(tokenizer)
        masking = WholeWordMasking(
            continues_V=continuing_words(tokenizer), mask_id=collator.mask_id, rate=self.mask_rate
        )
        if not self.contrastive:
            return MaskedPassages(corpus, collator, masking, length=self.length)
        return SpanPairs(corpus, collator, masking, rows_by_document(corpus), length=self.length)
