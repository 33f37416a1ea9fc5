"""Cloze recall: of a training that is measured by it, and of `eval-cloze`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, Self

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import Precision, Settings, check_device, help_texts, reads, runtime, setting
from realmctl.retrieval.names import Bm25Tokens
from realmctl.training.monitoring.alarms import AlarmName
from realmctl.training.settings.base import TrainSettings, check_loss_alarms

CLOZE_HEADLINE = ("cloze_rr", "cloze_gain", "title_gain", "reworded_title_gain", "kept_step")
"""The most important metrics of a training that is measured, for headlines and `compare`."""


def check_sample(flag: str, count: int) -> None:
    """Check how many sentences or titles are asked for: one has no interval. Raises ConfigError."""
    if count == 1:
        raise ConfigError(
            f"{flag} 1: of one there is no interval, so no gain could be shown. Ask for more, such as 400, or for none by 0."
        )


def check_cloze_alarms(flag: str, names: Sequence[str]) -> None:
    """Check that alarms concern the loss or cloze recall. Raises ConfigError."""
    check_loss_alarms(flag, [name for name in names if name != "cloze_lost"])


class ClozeSettings(TrainSettings):
    """The training of a retriever, which may end after some minutes, and may be measured on sentences that were cut out of their blocks."""

    minutes: float | None = setting(
        "Minutes of training, its measurements included. A few steps are timed first, and as many are taken as fit, at most --steps. Default: no limit.",
        default=None,
        above=0,
        at_most=1e6,
    )
    cloze_recall: int = setting(
        "Sentences that are cut out of their blocks, and must find them. The share that does is logged at the start, every so often and at the end. 0: none.",
        default=0,
        at_least=0,
        check=check_sample,
    )
    cloze_every: int | None = setting(
        "steps between two measurements of cloze recall. Default: a fifth of the steps, rounded up.",
        default=None,
        at_least=1,
        used_with="cloze_recall",
        advanced=True,
    )
    cloze_titles: int = setting(
        "Titles that are taken off their blocks and must find them too. --keep gain and unless-lost then ask for a gain of titles, and of the third of them that shares the fewest words with its block. 0: none.",
        default=0,
        at_least=0,
        used_with="cloze_recall",
        check=check_sample,
        advanced=True,
    )
    keep: Literal["last", "best", "gain", "unless-lost"] = setting(
        "Weights that are kept. last: those of the last step. best: those of the best cloze recall. gain: the same, but the start unless a gain over it is shown. unless-lost: the last ones without a shown loss.",
        default="last",
        used_with="cloze_recall",
        advanced=True,
    )
    stop_on: tuple[AlarmName, ...] = runtime(help_texts.STOP_ON, default=(), check=check_cloze_alarms, advanced=True)

    @property
    def questions(self) -> Artifact | None:
        """Questions of documents that the training leaves out, which measure it too."""
        return None

    @property
    def seconds(self) -> float | None:
        return None if self.minutes is None else 60 * self.minutes

    def one_step(self) -> Self:
        return dataclasses.replace(super().one_step(), minutes=None)

    @property
    def measured_every(self) -> int:
        """Steps between two measurements: `cloze_every`, or as many as make five of a run."""
        return self.cloze_every or -(-self.steps // 5)


class EvalClozeSettings(Settings):
    """Measuring cloze recall."""

    blocks: Artifact = reads("blocks", help="Blocks that sentences are cut out of, and that they look for.")
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to measure.",
        unused_when=lambda given: given.get("method") == "bm25",
        default=None,
    )
    start: Artifact | None = reads(
        "retriever",
        help="Retriever that is measured too, such as the start of training, for the gain over it.",
        explicit_only=True,
        default=None,
    )
    method: Literal["dense", "bm25"] = setting("What is measured. dense: the retriever. bm25: BM25.", default="dense")
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None, advanced=True)
    bm25_tokens: Bm25Tokens = setting(help_texts.BM25_TOKENS, default="pieces", advanced=True)
    sentences: int = setting("Sentences to cut out, drawn at random.", default=400, at_least=2)
    query_wordpieces: int = setting(help_texts.QUERY_WORDPIECES, default=0, at_least=0, left_out_at=0, advanced=True)
    titles: int = setting(
        "Titles that are taken off their blocks and must find them too; blocks that contain their title are not asked for. 0: none.",
        default=0,
        at_least=0,
        check=check_sample,
    )
    among: int = setting(
        "Blocks among which they search, drawn at random where there are more. 0: all.",
        default=20_000,
        at_least=0,
        advanced=True,
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0, advanced=True)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)
