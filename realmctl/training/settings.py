"""The settings of everything that trains: inputs, sources, settings and runtime options, each declared once.

A stage inherits its class here and hands itself to the function that trains with it. Nothing heavy is imported here, because
`realmctl --help` reads this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, get_args

from realmctl.artifacts import Artifact, Origin
from realmctl.artifacts.description import describe_encoder
from realmctl.deviations import FinetuneDeviation, IctDeviation, PretrainDeviation, SpiderDeviation, explained
from realmctl.errors import ConfigError
from realmctl.execution import processes
from realmctl.index.names import INDEX_TYPES
from realmctl.index.settings import IndexSettings, check_depths
from realmctl.log import warn
from realmctl.pipeline import (
    Exchange,
    Settings,
    Stage,
    check_device,
    check_refresh_device,
    flag_of,
    help_texts,
    reads,
    runtime,
    setting,
    source,
)
from realmctl.pipeline.values import LARGEST_INT
from realmctl.retrieval.answering.settings import LmReaderSettings
from realmctl.retrieval.names import Bm25Tokens, Fusion, retrieval_names
from realmctl.training.monitoring.alarms import AlarmName, LossAlarm

Pooling = Literal["pooler", "cls", "mean"]
LARGEST_BATCH = 2**17
"""Most examples of a step. Each process draws all of them, and holds the gradients of its own."""
LARGEST_RATE = 1e6
"""Largest learning rate. Steps far above it leave float32 at once."""


def changes_of(then_lr: Sequence[str]) -> dict[int, float]:
    """Return {step: rate} of `STEP=RATE` entries. Raises ValueError for what is none."""
    return {int(step): float(rate) for step, rate in (each.split("=") for each in then_lr)}


def check_then_lr(flag: str, values: Sequence[str]) -> None:
    """Check the form of `STEP=RATE` entries. Raises ConfigError."""
    for value in values:
        try:
            [(step, rate)] = changes_of([value]).items()
        except ValueError:
            step, rate = -1, 0.0
        if step < 0 or not 0 < rate <= LARGEST_RATE:
            raise ConfigError(
                f"{flag} {value!r} is not STEP=RATE, such as 500=1e-5, with a rate above 0 and at most {LARGEST_RATE:g}."
            )


def check_loss_alarms(flag: str, names: Sequence[str]) -> None:
    """Check that alarms concern the loss, as those of every training do. Raises ConfigError."""
    if others := sorted(set(names) - set(get_args(LossAlarm))):
        raise ConfigError(
            f"{flag} {others[0]}: only pretrain has this alarm. Here are {', '.join(get_args(LossAlarm))}."
        )


TRACKERS = re.compile(r"tensorboard:.+|(trackio|wandb|mlflow)(:.+)?")


def check_track(flag: str, value: str) -> None:
    """Check the spelling of a tracker. Raises ConfigError."""
    if not TRACKERS.fullmatch(value):
        raise ConfigError(f"{flag} {value!r} is not tensorboard:FOLDER, trackio:PROJECT, wandb:PROJECT or mlflow:URI.")


class TrainSettings(Settings):
    """What all trainings have."""

    steps: int = setting(help_texts.STEPS, default=10_000, at_least=1)
    batch_size: int = setting("Examples per step.", default=128, at_least=1, at_most=LARGEST_BATCH)
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-4, above=0, at_most=LARGEST_RATE)
    then_lr: tuple[str, ...] = setting(help_texts.THEN_LR, default=(), check=check_then_lr)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="bert")
    seed: int = setting(help_texts.SEED, default=0, at_least=0, at_most=LARGEST_INT)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    micro_batch: int = runtime("Examples computed at once; 0 means the whole batch.", default=0, at_least=0)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    track: str | None = runtime(help_texts.TRACK, default=None, check=check_track)
    stop_on: tuple[AlarmName, ...] = runtime(help_texts.STOP_ON, default=(), check=check_loss_alarms)

    @property
    def seconds(self) -> float | None:
        """The time after which training ends; None for no limit."""
        return None

    @property
    def at_once(self) -> int:
        """Examples of a micro-batch."""
        return self.micro_batch or self.batch_size

    @property
    def warmup_steps(self) -> int:
        """Steps of linear warm-up: `warmup`, or a tenth of the steps, 10,000 at most as in BERT."""
        return min(10_000, self.steps // 10) if self.warmup is None else self.warmup

    def lr_at(self, step: int) -> float:
        """The peak learning rate that counts at a step, counted from 0: `lr`, or the last of `then_lr` that has begun."""
        begun = {start: rate for start, rate in changes_of(self.then_lr).items() if start <= step}
        return begun[max(begun)] if begun else self.lr

    @property
    def peak_lr(self) -> float:
        """The highest learning rate that a step has: warm-up that is long beside the steps never reaches `lr`."""
        steps, warmup = self.steps, self.warmup_steps
        if warmup >= steps:
            return self.lr * (steps - 1) / max(1, warmup)
        return self.lr * max((warmup - 1) / max(1, warmup), 1 - warmup / steps)


def check_cloze_alarms(flag: str, names: Sequence[str]) -> None:
    """Check that alarms concern the loss or cloze recall. Raises ConfigError."""
    check_loss_alarms(flag, [name for name in names if name != "cloze_lost"])


class ClozeSettings(TrainSettings):
    """The training of a retriever, which may end after some minutes, and may be measured on sentences that were cut out of their blocks."""

    minutes: float | None = setting(
        "Minutes of training, its measurements included. A few steps are timed first, and as many are taken as fit, at most --steps; the "
        "result is that of --steps with this number. Default: no limit.",
        default=None,
        above=0,
        at_most=1e6,
    )
    cloze_recall: int = setting(
        "Sentences that are cut out of their blocks; each must find its block, which needs no labels. The share that does is logged at the "
        "start, every so often and at the end. 0: none.",
        default=0,
        at_least=0,
    )
    cloze_blocks: int = setting(
        "Blocks among which these sentences search, drawn at random; the blocks that they were cut out of are among them. 0: all blocks, "
        "which are then embedded at each measurement.",
        default=1000,
        at_least=0,
    )
    cloze_every: int | None = setting(
        "Steps between two measurements of cloze recall. Default: a fifth of the steps, rounded up.",
        default=None,
        at_least=1,
    )
    cloze_patience: int = setting(
        "Stop after this number of measurements in a row without a better cloze recall. 0: take all steps.",
        default=0,
        at_least=0,
    )
    cloze_titles: int = setting(
        "Titles that are taken off their blocks and must find them too; blocks that contain their title are not asked for. --keep gain then "
        "keeps weights only if titles show a gain over the start too. 0: none.",
        default=0,
        at_least=0,
    )
    keep: Literal["last", "best", "gain"] = setting(
        "Weights that are kept. last: those of the last step. best: those of the best cloze recall. gain: the same, but the start unless a "
        "gain over it is shown.",
        default="last",
    )
    stop_on: tuple[AlarmName, ...] = runtime(help_texts.STOP_ON, default=(), check=check_cloze_alarms)

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = {
            "--keep": self.keep != "last" and self.keep,
            "--cloze-patience": self.cloze_patience,
            "--cloze-titles": self.cloze_titles,
        }
        if not self.cloze_recall and any(asked.values()):
            flag = next(f"{name} {value}" for name, value in asked.items() if value)
            raise ConfigError(f"{flag} needs --cloze-recall N, such as 400, which says what is better.")

    @property
    def seconds(self) -> float | None:
        return None if self.minutes is None else 60 * self.minutes

    @property
    def measured_every(self) -> int:
        """Steps between two measurements: `cloze_every`, or as many as make five of a run."""
        return self.cloze_every or -(-self.steps // 5)


class TrainingStage(TrainSettings, Stage, abstract=True):
    """Base of the stages that train: they can be resumed, torchrun may start them, and `--dry-run` can try them."""

    resumable = True
    parallel = True

    def together(self) -> AbstractContextManager[Exchange]:
        from realmctl.training.data_parallel import together

        return together(self.device)

    def trial(self) -> dict[str, float]:
        from realmctl.training.monitoring.trial import trial_of

        return trial_of(self.run, self.origin())

    def unfinished(self, out: Path, origin: Origin) -> Path | None:
        from realmctl.training.takeover import taken_over

        return (taken_over(out, origin) if self.then_lr else None) or super().unfinished(out, origin)

    def _made(self, out: Path, origin: Origin) -> Artifact:
        if self.then_lr and processes.is_first():
            from realmctl.training.takeover import take_over

            take_over(out, origin)
        return super()._made(out, origin)

    def estimate(self) -> dict[str, float]:
        return {"peak_lr": self.peak_lr} if self.steps else {}


class BertSettings(TrainSettings):
    """A training that starts from an encoder."""

    encoder: Artifact | None = reads(
        "encoder", "reader", help="Encoder to start from.", optional=True, replaced_by=("bert",), default=None
    )
    bert: str | None = source(
        "BERT to start from, instead of --encoder: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )

    @property
    def trained_folder(self) -> Path | None:
        """The folder of the trained BERT to start from; None for a BERT from scratch."""
        if self.encoder is not None:
            return self.encoder.path
        return Path(self.bert) if self.bert and not self.bert.startswith("scratch:") else None


def _other_start(given: Mapping[str, object]) -> bool:
    """Whether training starts from something else than an encoder."""
    return given.get("bert") is not None or given.get("retriever") is not None


class WarmStartSettings(BertSettings):
    """A training that prepares a retriever. It starts from an encoder, or from a whole retriever."""

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder to start from.",
        optional=True,
        replaced_by=_other_start,
        default=None,
    )
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to start from, instead of --encoder, such as an imported one. It keeps its pooling, projection, prompts and "
        "scale.",
        explicit_only=True,
        default=None,
    )

    def refuse_with_retriever(self, *names: str) -> None:
        """Check that no setting is given that the retriever decides. Raises ConfigError."""
        for name in names:
            if self.retriever is not None and (value := getattr(self, name)) is not None:
                raise ConfigError(f"{flag_of(name)} {value}: the retriever decides this. Leave it out, or --retriever.")


GroupBy = Literal["document", "title", "source"]
"""What blocks of one document have in common: the document that they were cut from, its title, or its id without a number at the end."""


class DocumentSettings(TrainSettings):
    """A training on blocks of one document."""

    group_by: GroupBy = setting(
        "What makes blocks parts of one document, for a corpus of passages. document: the document that they were cut from. title: its "
        "title. source: its id without a number at the end, such as ls for ls#0 and ls#1.",
        default="document",
    )


class MlmSettings(TrainSettings):
    """Masked language modelling, on blocks or as copy pre-training."""

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    spans: Artifact | None = reads(
        "spans",
        help="Tagged sentences for copy pre-training. Default: train on blocks alone.",
        explicit_only=True,
        default=None,
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
        "Kind of copy pre-training with --spans. steady: blocks that restate the sentence. curriculum: copies of the sentence "
        "first, then noisy copies, other blocks, random blocks and null documents.",
        default="steady",
    )
    window: int = setting("Window of a block in wordpieces, with --practice curriculum.", default=64, at_least=8)
    length: int = setting(
        "Longest example in wordpieces without --spans, [CLS] and [SEP] included.", default=128, at_least=3, at_most=512
    )
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. It is saved with the encoder, so later stages train with it too. Default: the loaded "
        "BERT's own, and 0.1 from scratch. Copy pre-training of a few hundred steps learns faster with 0.",
        default=None,
        at_least=0,
        below=1,
    )


class WarmEncoderSettings(ClozeSettings, WarmStartSettings):
    """A warm start whose training predicts masked wordpieces of windows of blocks."""

    warmup: int | None = setting("Warm-up steps. Default: a tenth of --steps.", default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    length: int = setting(
        "Longest example in wordpieces, [CLS] and [SEP] included.", default=128, at_least=3, at_most=512
    )

    @property
    def warmup_steps(self) -> int:
        return self.steps // 10 if self.warmup is None else self.warmup


class CondenserSettings(DocumentSettings, WarmEncoderSettings):
    """Condenser, or coCondenser with `contrastive`."""

    encoder: Artifact | None = reads(
        "encoder",
        help="Encoder to start from. If condenser-init made it, training continues with its head.",
        optional=True,
        replaced_by=_other_start,
        default=None,
    )
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to start from with --contrastive, instead of --encoder, such as an imported one: what it computes of a span "
        "is compared, so it keeps its pooling, projection, prompts and scale. It becomes the part `retriever` of the result.",
        explicit_only=True,
        default=None,
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
        at_most=48,
    )
    late_mlm: bool = setting("Also predict the masked wordpieces from the last layer.", default=True)
    batch_size: int = setting(
        "Blocks per step; with --contrastive, documents per step, two spans each.",
        default=128,
        at_least=1,
        at_most=LARGEST_BATCH,
    )
    mask_rate: float = setting(
        "Share of the wordpieces to mask. Words are masked whole.", default=0.15, above=0, below=1
    )
    micro_batch: int = runtime(
        "Blocks computed at once, or spans with --contrastive; 0 means the whole batch. The gradients stay those of the whole batch.",
        default=0,
        at_least=0,
    )


class RetroMaeSettings(WarmEncoderSettings):
    """RetroMAE, or DupMAE with `bag_of_words`."""

    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to start from, instead of --encoder, such as an imported one: what it pools is decoded, so it keeps its "
        "pooling, projection, prompts and scale. It becomes the part `retriever` of the result.",
        explicit_only=True,
        default=None,
    )
    batch_size: int = setting("Blocks per step.", default=128, at_least=1)
    mask_rate: float = setting(
        "Share of the wordpieces that are masked for the encoder. Words are masked whole.",
        default=0.3,
        above=0,
        below=1,
    )
    decoder_mask_rate: float = setting(
        "Share of the wordpieces that a position of the decoder may not read.", default=0.5, above=0, below=1
    )
    bag_of_words: float = setting(
        "Weight of DupMAE's loss: the wordpieces of the text, without order, predicted from the states behind [CLS]. The public code "
        "has 0.1. 0 is RetroMAE.",
        default=0.0,
        at_least=0,
        at_most=1e3,
    )


class ContrastSettings(ClozeSettings):
    """Contrast within a batch: each query has to find its block among those of the others."""

    distill_start: float = setting(
        "Weight of a second loss, which holds on to what the retriever knew: the Kullback-Leibler divergence of the batch's softmax "
        "from that of the retriever before training. 0 leaves it out.",
        default=0.0,
        at_least=0,
        at_most=1e3,
    )
    queue: int = setting(
        "Blocks of earlier steps that are negatives too (MoCo). Blocks are then embedded by a copy of the retriever that follows it slowly. "
        "Contriever has 131072. 0: the batch alone.",
        default=0,
        at_least=0,
        at_most=4_194_304,
    )
    momentum: float = setting(
        "With --queue: share of itself that the copy keeps at each step. Contriever has 0.9995.",
        default=0.9995,
        at_least=0,
        below=1,
    )
    micro_batch: int = runtime(help_texts.CONTRAST_MICRO_BATCH, default=0, at_least=0)


NEW_RETRIEVER = {
    "projection": 128,
    "query_length": 64,
    "projection_head": "layer-norm",
    "projection_init": "random",
    "projection_norm_eps": 1e-12,
    "towers": "shared",
}
"""What a new retriever has where nothing else is asked for."""


class RetrieverSettings(ContrastSettings, WarmStartSettings):
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
        "What makes an embedding of the pooled state. layer-norm: a linear layer and a layer norm, as in REALM. plain: a linear layer. "
        "none: nothing, so every server of embeddings gives the exported vectors. Default: layer-norm, or the retriever's.",
        default=None,
    )
    query_length: int | None = setting(
        "Longest query in wordpieces, [CLS] and [SEP] included. Default: 64, or the retriever's.",
        default=None,
        at_least=3,
    )
    projection_init: Literal["random", "pca"] | None = setting(
        "Projection at the start. random: random numbers. pca: the principal components of the blocks' vectors, which keep what "
        "a sentence encoder knows. Default: random, or the retriever's.",
        default=None,
    )
    scale: float | None = setting(
        "Factor between an inner product and the cosine at the start. Default: the width of the embeddings, or the retriever's.",
        default=None,
        at_least=1e-6,
        at_most=1e6,
    )
    pooling: Pooling | None = setting(
        "What is projected. pooler: the output of BERT's tanh pooler. cls: the state of [CLS] as it is, as Condenser does. "
        "mean: the mean over the tokens, as sentence encoders do. Default: the retriever's, or what the encoder's encoder.json says "
        "(cls for one that condenser-init made), otherwise pooler.",
        default=None,
    )
    projection_norm_eps: float | None = setting(
        "Epsilon of the projection's layer norm. The published weights have 1e-12, the open ICT code has 1e-3. Default: 1e-12, or "
        "the retriever's.",
        default=None,
        at_least=1e-30,
        below=1,
    )
    towers: Literal["shared", "separate"] | None = setting(
        "shared: one encoder for queries and blocks. separate: two encoders that start equal. Default: shared, or the retriever's.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retriever is not None:
            return
        bare = self.projection_head == "none"
        if bare and (self.projection is not None or self.projection_init == "pca"):
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


class IctSettings(RetrieverSettings):
    """The inverse cloze task."""

    batch_size: int = setting(
        "Pairs of a sentence and a block per step; the other blocks of the batch are the negatives.",
        default=4096,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    mask_rate: float = setting(
        "Share of the pairs in which the sentence is removed from its block.", default=0.9, at_least=0, at_most=1
    )
    pairs: Literal["sentences", "crops"] = setting(
        "What is paired. sentences: a sentence and its block (ICT). crops: two random runs of wordpieces of a block, independent of each "
        "other (Contriever).",
        default="sentences",
    )
    delete_rate: float = setting(
        "Share of the wordpieces that are deleted from each crop. Contriever has 0.1.", default=0.0, at_least=0, below=1
    )
    hard_negatives: int = setting(
        "Hard negatives of each sentence: the blocks that BM25 ranks highest for it, but its own and those that contain it.",
        default=0,
        at_least=0,
        at_most=32,
    )
    null_share: float = setting(
        "Share of the sentences that may not choose their block, so that the null document is right. 0 is ORQA's task.",
        default=0.0,
        at_least=0,
        below=1,
    )
    official: tuple[IctDeviation, ...] = setting(explained(IctDeviation), default=())


class SpiderSettings(DocumentSettings, RetrieverSettings):
    """Recurring span retrieval."""

    steps: int = setting("Training steps. 0 saves the initial weights.", default=200_000, at_least=0)
    batch_size: int = setting(
        "Documents per step. Each gives a query, its block and a hard negative; the other blocks of the batch are negatives too.",
        default=1024,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    lr: float = setting(help_texts.LEARNING_RATE, default=2e-5, above=0, at_most=LARGEST_RATE)
    keep_rate: float = setting("Share of the queries that keep the span.", default=0.5, at_least=0, at_most=1)
    window: int = setting("Most wordpieces of a query; it has at least 5.", default=30, at_least=5, at_most=511)
    official: tuple[SpiderDeviation, ...] = setting(explained(SpiderDeviation), default=())


class DprSettings(ContrastSettings):
    """Contrast on questions with labelled passages."""

    retriever: Artifact | None = reads("retriever", help="Retriever to fine-tune.", explicit_only=True, default=None)
    passages: Path = source(
        "Questions with labelled passages: DPR's JSON, Tevatron's JSON lines or Parquet, a BEIR folder, or queries with --qrels."
    )
    qrels: Path | None = source(
        "Relevance judgements of the queries, in TREC's or BEIR's format. Those of 0 are hard negatives.", default=None
    )
    corpus: tuple[Path, ...] = source("Corpus with the passages that are named by id alone.", default=())
    blocks: Artifact | None = reads(
        "blocks", help="Blocks that --cloze-recall measures on.", explicit_only=True, default=None
    )
    hard_negatives: int = setting("Hard negatives of a question at each step.", default=1, at_least=0, at_most=32)
    steps: int = setting(help_texts.STEPS, default=18_400, at_least=1)
    batch_size: int = setting(
        "Questions per step; the passages of the others are negatives too.",
        default=128,
        at_least=2,
        at_most=LARGEST_BATCH,
    )
    lr: float = setting(help_texts.LEARNING_RATE, default=2e-5, above=0, at_most=LARGEST_RATE)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")


class RefreshSettings(TrainSettings):
    """An index that is refreshed while training runs: the index and its parts, and how it is kept fresh."""

    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact = reads("retriever", help="Retriever to start from.")
    index: Artifact = reads("index", help="Index of the blocks, built with that retriever.")
    refresh: Literal["background", "lockstep", "inline", "never"] = setting(
        "What refreshes the index. background: another process, as fast as it can. lockstep: another process, deterministic: each "
        "index is swapped in exactly one period after its snapshot. inline: this process. never: nothing.",
        default="background",
    )
    refresh_every: int | Literal["auto"] = setting(
        "Number of steps between snapshots for the index refresh. auto: a snapshot when the embeddings of the blocks have drifted by"
        " --refresh-drift.",
        default=500,
        at_least=1,
    )
    refresh_drift: float = setting(
        "With --refresh-every auto: drift since the last snapshot at which the next is due, 1 minus the mean cosine.",
        default=0.001,
        above=0,
        at_most=2,
    )
    max_index_age: int = runtime(
        "Largest age of the index, in steps, before training waits; 0 means three refresh periods, with auto no limit.",
        default=0,
        at_least=0,
    )
    when_stale: Literal["wait", "fail", "continue"] = runtime(
        "What to do at that age. wait: for a fresher index. fail: save a checkpoint and stop with exit code 5. continue: train on "
        "with a warning. With --refresh lockstep and inline, training always waits.",
        default="wait",
    )
    refresh_device: str = runtime(
        "Device of the refresher of background and lockstep: auto, cpu or cuda:N. elsewhere: you start `realmctl refresh` yourself.",
        default="auto",
        check=check_refresh_device,
    )
    index_shards: bool = runtime(help_texts.INDEX_SHARDS, default=False)

    @property
    def period(self) -> int:
        """Steps between two snapshots; with `auto`, the fewest."""
        return 1 if self.refresh_every == "auto" else self.refresh_every

    @property
    def max_age(self) -> int:
        """Age of the index in steps, beyond which training does not go on as before."""
        return self.max_index_age or (self.steps if self.refresh_every == "auto" else 3 * self.refresh_every)

    def check(self) -> None:
        if self.refresh == "lockstep" and self.refresh_every == "auto":
            raise ConfigError("--refresh lockstep needs a number of steps: --refresh-every auto follows the drift.")
        if self.max_index_age and self.max_index_age < self.period:
            raise ConfigError(
                f"--max-index-age {self.max_index_age} is below --refresh-every {self.refresh_every}: training would wait for an "
                "index that nothing builds."
            )
        if self.when_stale != "wait" and self.refresh != "background":
            raise ConfigError(
                f"--when-stale {self.when_stale} is for --refresh background. With --refresh {self.refresh} no index becomes too old."
            )


class PretrainSettings(LmReaderSettings, ClozeSettings, RefreshSettings, BertSettings):
    """REALM pre-training."""

    spans: Artifact | None = reads(
        "spans",
        help="Tagged sentences to learn from. They may come from another corpus than the blocks.",
        replaced_by=lambda given: given.get("target") == "continuation",
        default=None,
    )
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder that the reader starts from.",
        optional=True,
        replaced_by=lambda given: bool(given.get("bert") or given.get("reader_lm")),
        default=None,
    )
    bert: str | None = source(
        "BERT that the reader starts from, instead of --encoder: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    target: Literal["span", "continuation"] = setting(
        "What is hidden. span: a span of a tagged sentence, as --masking says. continuation, with --reader-lm: the second part of a block, so "
        "that no --spans are needed.",
        default="span",
    )
    target_length: int = setting(
        "With --reader-lm: most hidden tokens that are asked for.", default=64, at_least=1, at_most=4096
    )
    reader: Literal["frozen", "trained"] | None = setting(
        "Whether the reader learns. frozen: the retriever alone does. Default: trained; with --reader-lm frozen.",
        default=None,
    )
    reader_cache: float = runtime(
        "With a frozen causal --reader-lm: memory in GB for keys and values of blocks, which are then not computed again when they are retrieved again. "
        "0: they are kept within a micro-batch.",
        default=0.0,
        at_least=0,
        at_most=1e5,
    )
    recall_questions: Path | None = source(
        "File of questions whose recall@1, @5 and @20 is logged whenever the index changes. At most 300 of them are used.",
        default=None,
    )
    steps: int = setting(help_texts.STEPS, default=200_000, at_least=1)
    batch_size: int = setting("Sentences per step.", default=512, at_least=1, at_most=LARGEST_BATCH)
    lr: float = setting(help_texts.LEARNING_RATE, default=3e-5, above=0, at_most=LARGEST_RATE)
    retriever_lr: float | None = setting(
        "Peak learning rate of the retriever. Default: --lr.", default=None, above=0, at_most=LARGEST_RATE
    )
    layer_decay: float = setting(help_texts.READER_LAYER_DECAY, default=1.0, above=0, at_most=1)
    dropout: float | None = setting(
        "Dropout of retriever and reader, saved with them. Default: each one's own.", default=None, at_least=0, below=1
    )
    candidates: int = setting("Candidates per query, the null document included.", default=8, at_least=2)
    null_document: bool = setting(
        "Make the null document candidate 0. Without it, all candidates are blocks, and the null document only serves to measure"
        " retrieval_utility.",
        default=True,
    )
    exclude_own: bool = setting("Exclude the block that holds the sentence itself from its candidates.", default=True)
    marginal: Literal["token", "sequence"] | None = setting(
        "Marginal likelihood. token: of each wordpiece (official code). sequence: of the whole span (paper). Default: token; with --reader-lm, or "
        "another --retriever-loss than marginal, sequence.",
        default=None,
    )
    retriever_loss: Literal["marginal", "distill", "replug"] = setting(
        "What the retriever learns. marginal: to make what is hidden likely (REALM, EMDR2). distill: to prefer the blocks with which the reader "
        "finds it most likely (Atlas). replug: the same with the divergence in the other direction.",
        default="marginal",
    )
    likelihood: Literal["sum", "mean"] | None = setting(
        "Log-likelihood of what is hidden: the sum or the mean over its tokens. Default: sum; with --retriever-loss distill or replug mean, as in Atlas.",
        default=None,
    )
    reader_temperature: float | None = setting(
        "What the reader's log-likelihoods are divided by. Default: 1; with --retriever-loss distill or replug 0.1, as in REPLUG. Atlas has 0.01.",
        default=None,
        above=0,
        at_most=1e6,
    )
    masking: Literal["salient", "random-span", "random-uniform"] = setting(
        "What is hidden. salient: a salient span. random-span: a random span of the same length. random-uniform: random wordpieces.",
        default="salient",
    )
    official: tuple[PretrainDeviation, ...] = setting(explained(PretrainDeviation), default=())
    micro_batch: int = runtime("Sentences computed at once; 0 means the whole batch.", default=0, at_least=0)
    stop_on: tuple[AlarmName, ...] = runtime(help_texts.STOP_ON, default=())

    def check(self) -> None:
        super().check()
        if self.distills and self.marginal == "token":
            raise ConfigError(
                f"--marginal token is for --retriever-loss marginal: {self.retriever_loss} compares whole spans."
            )
        if self.per_token and self.mean_likelihood:
            raise ConfigError("--likelihood mean is for --marginal sequence: with token each token has its own.")
        if self.spans is None and self.target == "span":
            raise ConfigError("--target span needs --spans, the tagged sentences in which spans are hidden.")
        if self.target == "continuation":
            named = {"--spans": self.spans, "--official span-draws": "span-draws" in self.official}
            if flag := next((name for name, value in named.items() if value), None):
                raise ConfigError(f"{flag} is for --target span: a continuation hides the second part of blocks.")
        if self.reader_lm is None:
            if self.target == "continuation":
                raise ConfigError("--target continuation needs --reader-lm: a masked reader fills short spans.")
            return
        others = {
            "--encoder": self.encoder,
            "--bert": self.bert,
            f"--masking {self.masking}": self.masking != "salient",
            f"--layer-decay {self.layer_decay:g}": self.layer_decay != 1,
        }
        if flag := next((name for name, value in others.items() if value), None):
            raise ConfigError(f"{flag} is for REALM's own reader. Leave it out with --reader-lm.")

    @property
    def distills(self) -> bool:
        """Whether the retriever learns the reader's choice."""
        return self.retriever_loss != "marginal"

    @property
    def per_token(self) -> bool:
        """Whether each hidden token has a marginal likelihood of its own."""
        otherwise = "sequence" if self.reader_lm or self.distills else "token"
        return (self.marginal or otherwise) == "token"

    @property
    def mean_likelihood(self) -> bool:
        """Whether a log-likelihood is the mean over its tokens."""
        return (self.likelihood or ("mean" if self.distills else "sum")) == "mean"

    @property
    def temperature(self) -> float:
        """What log-likelihoods are divided by."""
        return self.reader_temperature or (0.1 if self.distills else 1.0)

    @property
    def reader_is_trained(self) -> bool:
        return (self.reader or ("frozen" if self.reader_lm else "trained")) == "trained"


def _needs_no_model(given: Mapping[str, object]) -> bool:
    """Whether the specified inputs are enough without a model."""
    dense = given.get("retrieval", "dense") == "dense"
    return (
        bool(given.get("retriever") and given.get("index"))
        if dense
        else bool(given.get("encoder") or given.get("bert"))
    )


class FinetuneSettings(TrainSettings):
    """Fine-tuning on questions: what it starts from, and how it learns."""

    model: Artifact | None = reads(
        "model",
        "qa-model",
        help="Pre-trained model to start from, or a qa-model to train further.",
        replaced_by=_needs_no_model,
        default=None,
    )
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads(
        "retriever", help="Retriever to use instead of the model's.", explicit_only=True, default=None
    )
    index: Artifact | None = reads(
        "index",
        help="Index to use instead of the model's.",
        instead_of="model",
        replaced_by=lambda given: given.get("retrieval") != "dense",
        default=None,
    )
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder that the reader starts from, instead of the model's reader.",
        explicit_only=True,
        default=None,
    )
    bert: str | None = source(
        "BERT that the reader starts from, instead of --encoder: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    questions: Path = source(help_texts.QUESTIONS)
    dev: Path | None = source(
        "File of development questions. The weights with the best span exact match on them are kept, instead of the last.",
        default=None,
    )
    spans: Artifact | None = reads(
        "spans",
        help="Tagged sentences that cloze questions are made from, to train on them too.",
        explicit_only=True,
        default=None,
    )
    retrieval: str = setting(
        "Retriever that finds the blocks. dense: retriever and index. bm25: BM25 over title and text. none: no blocks (closed"
        " book). Other names come from plug-ins.",
        default="dense",
        choices=retrieval_names,
    )
    freeze_retriever: bool = setting("Train only the reader; the retriever does not change.", default=False)
    cloze_share: float | None = setting(
        "With --spans: share of a step's questions that are cloze questions, which are further examples for a reader"
        " with few questions. Default: 0.5.",
        default=None,
        above=0,
        below=1,
    )
    dev_every: int = setting("Number of steps between evaluations on --dev.", default=500, at_least=1)
    epochs: float = setting("Number of passes over the questions.", default=2.0, above=0, at_most=1e6)
    steps: int = setting("Number of training steps; 0 means as many as --epochs gives.", default=0, at_least=0)
    batch_size: int = setting(
        "Questions per step; the official code has 1.", default=16, at_least=1, at_most=LARGEST_BATCH
    )
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-5, above=0, at_most=LARGEST_RATE)
    retriever_lr: float | None = setting(
        "Peak learning rate of the retriever. Default: --lr; for BM25's factor a multiple of it.",
        default=None,
        above=0,
        at_most=LARGEST_RATE,
    )
    layer_decay: float = setting(help_texts.READER_LAYER_DECAY, default=1.0, above=0, at_most=1)
    retriever_beam: int = setting(
        "Blocks retrieved per question; the retriever's loss covers them.", default=5000, at_least=1
    )
    reader_beam: int = setting("Blocks read per question, the best of those retrieved.", default=5, at_least=1)
    reader_length: int = setting("Longest input of the reader, in wordpieces.", default=320, at_least=8)
    span_width: int = setting("Longest answer, in wordpieces.", default=10, at_least=1)
    answer_test: Literal["substring", "tokens"] = setting(
        "When a block counts as holding an answer. substring: as raw text (official). tokens: as whole words.",
        default="substring",
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None)
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None)
    objective: Literal["orqa", "paper", "hard-em"] = setting(
        "Objective. orqa: one softmax over the spans of all blocks read, plus the retriever's loss. paper: the sum over the blocks"
        " read of p(z|x) p(y|z,x), with a softmax over the spans of each block. hard-em: as orqa, but at more and more steps the"
        " reader learns from the likeliest mention of the answer alone (Min et al. 2019).",
        default="orqa",
    )
    hard_em_tau: int = setting(
        "With hard-em: step N learns from the likeliest mention alone with probability min(N / this number, 0.8).",
        default=4000,
        at_least=1,
    )
    official: tuple[FinetuneDeviation, ...] = setting(explained(FinetuneDeviation), default=())
    index_shards: bool = runtime(help_texts.INDEX_SHARDS, default=False)
    micro_batch: int = runtime("Questions computed at once; 0 means the whole batch.", default=0, at_least=0)

    @property
    def start(self) -> Artifact | None:
        """The encoder that the reader starts from: `encoder`, or else the model's reader; None with `bert`."""
        if self.encoder or self.bert or self.model is None:
            return self.encoder
        if "reader" not in self.model.manifest.parts:
            raise ConfigError(
                f"{self.model} was pre-trained with --reader-lm and holds no encoder. Name one with --encoder or --bert."
            )
        return self.model.part("reader")

    @property
    def share_of_cloze(self) -> float:
        return 0.5 if self.cloze_share is None else self.cloze_share

    @property
    def cloze_per_step(self) -> int:
        """Questions of each step that are cloze questions."""
        return round(self.share_of_cloze * self.batch_size) if self.spans is not None else 0


class LmInitSettings(TrainSettings):
    """Salient-span pre-training of a language model."""

    spans: Artifact = reads("spans", help="Tagged sentences to train on.")
    blocks: Artifact | None = reads(
        "blocks",
        help="Blocks for copy pre-training: each sentence stands behind a block that restates it. Default: sentences alone.",
        explicit_only=True,
        default=None,
    )
    lm: str = source("Language model to start from: a folder or a hub id, of T5's kind or of GPT-2's.", hub=True)
    batch_size: int = setting("Sentences per step.", default=32, at_least=1, at_most=LARGEST_BATCH)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    length: int = setting("Longest sentence, in tokens of the language model.", default=128, at_least=4, at_most=4096)
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. Default: the model's own.", default=None, at_least=0, below=1
    )
    micro_batch: int = runtime("Sentences computed at once; 0 means the whole batch.", default=0, at_least=0)


class LmFinetuneSettings(TrainSettings):
    """Closed-book fine-tuning of a language model."""

    lm: str | None = source("Language model to start from: a folder or a hub id.", default=None, hub=True)
    language_model: Artifact | None = reads(
        "language-model", help="Language model that lm-init made, instead of --lm.", explicit_only=True, default=None
    )
    questions: Path = source(help_texts.QUESTIONS)
    prompt: str | None = setting(
        "Text that the model reads, with {question} at the question's place. Default: the question alone for T5's kind, and"
        " 'Question: {question}', a line break and 'Answer:' for GPT-2's.",
        default=None,
    )
    epochs: float = setting("Number of passes over the questions.", default=20.0, above=0, at_most=1e6)
    steps: int = setting("Number of training steps; 0 means as many as --epochs gives.", default=0, at_least=0)
    batch_size: int = setting("Questions per step.", default=32, at_least=1, at_most=LARGEST_BATCH)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="adamw")
    dropout: float | None = setting(
        "Dropout, from 0 to below 1. Default: the model's own.", default=None, at_least=0, below=1
    )
    question_length: int = setting(
        "Longest prompt with its question, in tokens of the language model.", default=128, at_least=4, at_most=4096
    )
    answer_length: int = setting(
        "Longest answer, in tokens of the language model.", default=32, at_least=1, at_most=512
    )
    beams: int = setting(
        "Width of the beam that writes answers. 1: greedy decoding.", default=1, at_least=1, at_most=64
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None)
    answer_field: str | None = setting(
        help_texts.ANSWER_FIELD,
        default=None,
    )
    micro_batch: int = runtime("Questions computed at once; 0 means the whole batch.", default=0, at_least=0)


class UtilitySettings(LmReaderSettings):
    """Measuring retrieval utility."""

    model: Artifact | None = reads(
        "model",
        help="Pre-trained model to measure.",
        replaced_by=lambda given: bool(
            given.get("retriever") and given.get("index") and (given.get("encoder") or given.get("reader_lm"))
        ),
        default=None,
    )
    spans: Artifact = reads("spans", help="Tagged sentences to measure on. Choose sentences that were not trained on.")
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads(
        "retriever", help="Retriever to use instead of the model's.", explicit_only=True, default=None
    )
    index: Artifact | None = reads(
        "index", help="Index to use instead of the model's.", instead_of="model", default=None
    )
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder to read with, instead of the model's reader.",
        explicit_only=True,
        default=None,
    )
    candidates: int = setting("Candidates per query, the null document included.", default=8, at_least=2)
    queries: int = setting("Spans to measure, drawn at random. 0 measures all of them.", default=0, at_least=0)
    batch_size: int = runtime("Sentences per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    @property
    def parts(self) -> tuple[Artifact, Artifact, Artifact | None]:
        """Retriever, index and reader: those that are named, or else those of the model. The reader is None with `reader_lm`.

        Raises:
            ConfigError: There is no model, and one of the three is not named; or there are two readers.
        """
        model, retriever, index, reader = self.model, self.retriever, self.index, self.encoder
        if self.reader_lm is not None and reader is not None:
            raise ConfigError("--encoder and --reader-lm are two readers. Leave one of them out.")
        if model is not None:
            if reader is None and self.reader_lm is None:
                reader = model.part("reader")
            return retriever or model.part("retriever"), index or model.part("index"), reader
        if not (retriever and index and (reader or self.reader_lm)):
            raise ConfigError(
                "eval-utility needs --model, or --retriever and --index together with --encoder or --reader-lm."
            )
        return retriever, index, reader


class EvalClozeSettings(Settings):
    """Measuring cloze recall."""

    blocks: Artifact = reads("blocks", help="Blocks that sentences are cut out of, and that they look for.")
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to measure.",
        unused_when=lambda given: given.get("method") == "bm25",
        default=None,
    )
    baseline: Artifact | None = reads(
        "retriever", help="Retriever to compare with, such as the start of training.", explicit_only=True, default=None
    )
    method: Literal["dense", "bm25", "hybrid"] = setting(
        "What is measured. dense: the retriever. bm25: BM25. hybrid: both, alone and fused, with the weight of BM25 that finds most.",
        default="dense",
    )
    fusion: Fusion = setting(help_texts.FUSION, default="ranks")
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None)
    bm25_tokens: Bm25Tokens = setting(help_texts.BM25_TOKENS, default="pieces")
    sentences: int = setting("Sentences to cut out, drawn at random.", default=400, at_least=2)
    query_wordpieces: int = setting(
        "Longest query: of a longer sentence a random run of so many wordpieces is taken. Questions are shorter than sentences, and BM25 is judged by "
        "short queries alone. 0: whole sentences.",
        default=0,
        at_least=0,
    )
    titles: int = setting(
        "Titles that are taken off their blocks and must find them too; blocks that contain their title are not asked for. 0: none.",
        default=0,
        at_least=0,
    )
    among: int = setting(
        "Blocks among which they search, drawn at random where there are more. 0: all.", default=20_000, at_least=0
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")


class DatastoreSettings(IndexSettings):
    """A kNN-LM's datastore."""

    encoder: Artifact = reads("encoder", "reader", help="Encoder with its head, or a pre-trained model for its reader.")
    spans: Artifact = reads("spans", help="Tagged sentences to store.")
    type: str = setting(
        "Type of index. exact: scores every state. int8: scores an 8-bit copy of every state, then the best themselves. hnsw: "
        "approximate graph search. faiss: what --factory describes. Other names come from plug-ins.",
        default="exact",
        choices=INDEX_TYPES.names,
    )
    recall_k: tuple[int, ...] = setting(
        "Numbers of neighbours that the recall counts; the lowest recall counts. Default: as many as eval-knn-lm searches. "
        "Repeatable.",
        default=(1024,),
        at_least=1,
        check=check_depths,
    )
    batch_size: int = runtime("Spans per batch.", default=64, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")


class KnnSettings(Settings):
    """A kNN-LM: neighbours k, their share lambda, and the temperature of their softmax."""

    encoder: Artifact = reads("encoder", "reader", help="Encoder that the datastore was built with.")
    datastore: Artifact = reads("datastore", help="Datastore of build-datastore.")
    spans: Artifact = reads("spans", help="Tagged sentences to measure on.")
    neighbours: int = setting("Number k of neighbours.", default=1024, at_least=1, at_most=65_536)
    share: float = setting(
        "Share lambda of the neighbours in the mixture, from 0 to 1.", default=0.25, at_least=0, at_most=1
    )
    temperature: float = setting(
        "Temperature that squared distances are divided by.", default=1.0, at_least=1e-6, at_most=1e6
    )
    batch_size: int = runtime("Spans per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
