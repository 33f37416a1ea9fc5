"""REALM pre-training, its index refresh, and `eval-utility`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.deviations import PretrainDeviation, explained
from realmctl.errors import ConfigError
from realmctl.pipeline import Precision, check_device, check_refresh_device, help_texts, reads, runtime, setting, source
from realmctl.retrieval.answering.settings import LmReaderSettings
from realmctl.training.monitoring.alarms import AlarmName
from realmctl.training.settings.base import LARGEST_BATCH, LARGEST_RATE, TrainSettings
from realmctl.training.settings.cloze import ClozeSettings
from realmctl.training.settings.start import BertSettings, ExcludeOwn


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
        "Drift since the last snapshot at which the next is due, 1 minus the mean cosine.",
        default=0.001,
        above=0,
        at_most=2,
        used_with="refresh_every=auto",
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
        if self.refresh_every != "auto" and self.refresh_drift != type(self).refresh_drift:
            raise ConfigError(
                f"--refresh-drift {self.refresh_drift:g} is for --refresh-every auto. With a number of steps no drift is measured."
            )
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
        "most hidden tokens that are asked for.", default=64, at_least=1, at_most=4096, used_with="reader_lm"
    )
    reader: Literal["frozen", "trained"] | None = setting(
        "Whether the reader learns. frozen: the retriever alone does. Default: trained; with --reader-lm frozen.",
        default=None,
    )
    reader_cache: float = runtime(
        "Memory in GB for keys and values of blocks, which are then not computed again when they are retrieved again, for a frozen causal model. "
        "0: they are kept within a micro-batch.",
        default=0.0,
        at_least=0,
        at_most=1e5,
        used_with="reader_lm",
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
    exclude_own: ExcludeOwn = setting(
        "Which blocks are no candidates for a sentence. block: the one that holds it. document: all blocks of its document; with passages as "
        "documents of their own, title: those with its title, or source: those with its id without a number at the end, such as ls for ls#0 and "
        "ls#1. nothing: all blocks are candidates.",
        default="block",
    )
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
    ict_weight: float = setting(
        "Weight of the inverse cloze task's loss in each step: sentences of --blocks find their block among those of their batch, as in "
        "ict-init. 0 leaves it out.",
        default=0.0,
        at_least=0,
        at_most=1e3,
    )
    ict_batch_size: int = setting(
        "sentences of the inverse cloze task per step.",
        default=32,
        at_least=2,
        at_most=LARGEST_BATCH,
        used_with="ict_weight",
    )
    distill_start: float = setting(
        "With --ict-weight, and in its batch. " + help_texts.DISTILL_START, default=0.0, at_least=0, at_most=1e3
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
        if self.distill_start and not self.ict_weight:
            raise ConfigError(
                f"--distill-start {self.distill_start:g} needs --ict-weight: it compares the scores of the inverse cloze task's batch."
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
    precision: Precision = setting(help_texts.PRECISION, default="auto")

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
