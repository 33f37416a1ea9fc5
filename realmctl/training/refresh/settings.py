"""The settings of an index that is refreshed while training runs."""

from __future__ import annotations

from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import check_refresh_device, help_texts, reads, runtime, setting
from realmctl.training.training_stage import TrainingStage


class RefreshSettings(TrainingStage, abstract=True):
    """Base of a stage that trains with an index that is refreshed: the index and its parts, and how it is kept fresh."""

    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact = reads("retriever", help="Retriever to start from.")
    index: Artifact = reads("index", help="Index of the blocks, built with that retriever.")
    steps: int = setting(help_texts.STEPS, default=200_000, at_least=1)
    refresh: Literal["background", "lockstep", "inline", "never"] = setting(
        "What refreshes the index. background: another process, as fast as it can. lockstep: another process, and each index goes "
        "into use one refresh period after its snapshot, so that no delay changes the result. inline: this process. never: nothing.",
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
    )
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
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
