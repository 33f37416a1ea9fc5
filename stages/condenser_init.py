"""`realmctl condenser-init`: an encoder's warm start by Condenser or coCondenser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, tokenizer_folder
from realmctl.artifacts.description import ENCODER, EncoderDescription, describe_encoder, write_description
from realmctl.errors import ConfigError
from realmctl.log import say, warn
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.training.training_stage import TrainingStage

if TYPE_CHECKING:
    from realmctl.models.condenser import Condenser
    from realmctl.training.data.masked_blocks import MaskedPassages


class CondenserInit(TrainingStage):
    """Train an encoder whose [CLS] state summarises a passage: Condenser, or coCondenser with --contrastive.

    A short head predicts masked wordpieces from the [CLS] state of the last layer and the token states of an early layer.
    Later stages use the backbone without the head. The head is saved with the backbone, so that another condenser-init
    can continue from both. Under torchrun each process takes a part of the batch, and each span is compared with the
    spans of all processes.
    """

    makes = "encoder"
    headline = ("loss", "accuracy", "seconds_per_step")

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    encoder: Artifact | None = reads(
        "encoder",
        help="Encoder to start from. If condenser-init made it, training continues with its head.",
        optional=True,
        replaced_by=("bert",),
    )
    bert: str | None = source(
        "BERT to start from, instead of --encoder: a folder, a hub id or scratch:SIZE. If the folder holds a Condenser head "
        "(exported by realmctl, or model.pt of the public code), training continues with that head.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    contrastive: bool = setting("Also train two spans of one document to find each other (coCondenser).", default=False)
    skip_from: int | None = setting(
        "Layer whose token states the head reads; 0 = the embeddings. Default: that of the head that training continues with, "
        "otherwise the middle layer (6 of 12).",
        default=None,
        at_least=0,
    )
    head_layers: int | None = setting(
        "Layers of the head. Default: those of the head that training continues with, otherwise 2.",
        default=None,
        at_least=1,
    )
    late_mlm: bool = setting("Also predict the masked wordpieces from the last layer.", default=True)
    steps: int = setting("Training steps.", default=10_000, at_least=1)
    batch_size: int = setting(
        "Blocks per step; with --contrastive, documents per step, two spans each.", default=128, at_least=1
    )
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-4, above=0)
    warmup: int | None = setting("Warm-up steps. Default: a tenth of --steps.", default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    mask_rate: float = setting(
        "Share of the wordpieces to mask. Words are masked whole.", default=0.15, above=0, below=1
    )
    length: int = setting(
        "Longest example in wordpieces, [CLS] and [SEP] included.", default=128, at_least=3, at_most=512
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime(
        "Blocks computed at once, or spans with --contrastive; 0 means the whole batch. The gradients stay those of the whole batch.",
        default=0,
        at_least=0,
    )
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def check(self) -> None:
        if self.contrastive and self.batch_size < 2:
            raise ConfigError(f"--batch-size {self.batch_size}: --contrastive needs at least 2 documents in a batch.")

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.models.bert.encoder import save_masked_lm
        from realmctl.training.loop import Compute, Schedule, train
        from realmctl.training.objectives.condenser import CondenserObjective, CondenserOptions

        model, examples = self._model(), self._examples()
        options = CondenserOptions(
            batch_size=self.batch_size,
            seed=self.seed,
            late_mlm=self.late_mlm,
            contrastive=self.contrastive,
            micro_batch=self.micro_batch,
        )
        objective = CondenserObjective(model, examples, options)
        warmup = max(1, self.steps // 10) if self.warmup is None else self.warmup
        schedule = Schedule.of(self, warmup=warmup)
        compute = Compute.of(self)
        metrics = train(objective, schedule, compute, out, "condenser-init")
        model.cpu()
        save_masked_lm(model.mlm, out.path)
        model.save_head(out.path)
        described = EncoderDescription(pooling="cls", skip_from=model.skip_from, head_layers=len(model.head))
        write_description(out.file(ENCODER), described)
        out.copy_folder(".", tokenizer_folder(self.blocks))
        return {"examples": len(examples), **metrics}

    def _model(self) -> Condenser:
        from realmctl.models.condenser import Condenser
        from realmctl.models.precision import seed_everything
        from realmctl.training.starts.encoder import starting_bert

        mlm = starting_bert(self.encoder, self.bert, self.blocks, self.seed)
        folder = self._trained_folder()
        before = describe_encoder(folder) if folder else None
        seed_everything(self.seed)  # the head is new, whatever the encoder
        model = Condenser(
            mlm,
            skip_from=_first_given(
                self.skip_from, before.skip_from if before else None, mlm.config.num_hidden_layers // 2
            ),
            head_layers=_first_given(self.head_layers, before.head_layers if before else None, 2),
        )
        if folder is not None:
            self._load_head(model, folder)
        return model

    def _load_head(self, model: Condenser, folder: Path) -> None:
        if model.load_head(folder):
            say(f"condenser-init: continuing with the Condenser head of {folder}")
            return
        advice = (
            "Start coCondenser from an encoder that condenser-init made." if self.contrastive else "Use a long warm-up."
        )
        warn(
            f"{folder} has no Condenser head, so a random head starts on a trained backbone. The authors of Condenser warn "
            f"that this can corrupt the backbone. {advice}"
        )

    def _trained_folder(self) -> Path | None:
        """The folder of the trained backbone to start from; None for a BERT from scratch."""
        if self.encoder is not None:
            return self.encoder.path
        return Path(self.bert) if self.bert and not self.bert.startswith("scratch:") else None

    def _examples(self) -> MaskedPassages:
        from realmctl.corpus.corpus import Corpus
        from realmctl.models.inputs import Collator
        from realmctl.tokens import wordpiece
        from realmctl.training.data.masked_blocks import (
            MaskedPassages,
            SpanPairs,
            WholeWordMasking,
            rows_by_document,
        )

        words, corpus = wordpiece.load(self.blocks.path), Corpus(self.blocks)
        collator = Collator.of(words)
        masking = WholeWordMasking(continues_V=words.continues, mask_id=collator.mask_id, rate=self.mask_rate)
        if not self.contrastive:
            return MaskedPassages(corpus, collator, masking, length=self.length)
        return SpanPairs(corpus, collator, masking, rows_by_document(corpus), length=self.length)


def _first_given(*values: int | None) -> int:
    """The first value that is not None."""
    return next(value for value in values if value is not None)
