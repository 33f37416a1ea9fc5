"""How old the index of `pretrain` will be, and how long the run then takes: its step and its refresh are measured, the rest is simulated."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from realmctl.amounts import duration_text
from realmctl.extras.plan.simulation import IndexAges, Refreshing, devices_for_age, simulate
from realmctl.index.index_type import open_index
from realmctl.index.vectors import open_vectors
from realmctl.models.precision import pick_device
from realmctl.pipeline.trial import Trial
from realmctl.training.settings.pretrain import RefreshSettings
from stages.embed import Embed

SIMULATED_STEPS = 20_000
"""Steps that the simulation takes. A longer run is like these many times over."""


@dataclass(frozen=True)
class Aging:
    """What is asked of the index.

    Attributes:
        refresh_devices: Machines like this one that only refresh; 0 means that the trainer's own does.
        target_age: Age in steps that 95 % of the steps should keep; None asks for nothing.
    """

    refresh_devices: int = 0
    target_age: int | None = None


@dataclass(frozen=True)
class PlannedIndex:
    """What was found.

    Attributes:
        ages: Ages of the index over the simulated steps.
        step_seconds: Of a step beside which nothing is refreshed.
        refresh_seconds: Of one refresh beside which no step is taken.
        seconds: Of the whole run, with its waits.
        target_age: See `Aging`.
        devices_for_age: Refreshers that keep the target; None if none was asked for, or if no number is enough.
    """

    ages: IndexAges
    step_seconds: float
    refresh_seconds: float
    seconds: float
    target_age: int | None
    devices_for_age: int | None

    def lines(self) -> Sequence[str]:
        """The lines for people."""
        ages, target, enough = self.ages, self.target_age, self.devices_for_age
        lines = [
            f"index: a refresh takes {duration_text(self.refresh_seconds)}; age in steps {ages.mean:,.0f} on average, "
            f"{ages.p95:,.0f} at the 95th percentile; training waits {ages.waited_seconds / ages.seconds:.1%} of its time"
        ]
        if target:
            lines.append(
                f"index age {target:,}: {enough:,} refresher{'s keep' if enough > 1 else ' keeps'} it for 95 % of the steps"
                if enough
                else f"index age {target:,}: no number of refreshers keeps it. Use a smaller --refresh-every."
            )
        return lines


def planned_index(
    stage: RefreshSettings, trial: Trial, times: float, build_seconds: float, aging: Aging
) -> PlannedIndex:
    """Measure a refresh, and simulate the run.

    Args:
        stage: The stage on a sample.
        trial: Its trial, without a refresh.
        times: How many times as many blocks the whole run has.
        build_seconds: Seconds in which the whole index is built.
        aging: What is asked.
    """
    embedding = Embed(blocks=stage.blocks, retriever=stage.retriever, precision=stage.precision, device=stage.device)
    embed_seconds = embedding.trial().times(times).seconds
    step_seconds = trial.each + (times - 1) * _seconds_to_scan(stage)
    every = stage.refresh_every

    def refreshing(devices: int) -> Refreshing:
        return Refreshing(
            steps=min(stage.steps, max(SIMULATED_STEPS, 40 * every)),
            step_seconds=step_seconds,
            every=every,
            embed_seconds=embed_seconds / (devices or 1),
            build_seconds=build_seconds,
            max_age=stage.max_age if stage.refresh == "background" else None,
            shared=not devices,
            inline=stage.refresh == "inline",
        )

    run = refreshing(aging.refresh_devices)
    ages = simulate(run)
    return PlannedIndex(
        ages,
        step_seconds,
        run.embed_seconds + run.build_seconds,
        trial.before + ages.seconds * stage.steps / run.steps,
        aging.target_age,
        devices_for_age(aging.target_age, refreshing(1)) if aging.target_age else None,
    )


def _seconds_to_scan(stage: RefreshSettings) -> float:
    """Seconds in which a step's queries are compared with all vectors of an exact index; 0 for others, which grow little with their rows."""
    if stage.index.settings.get("type") != "exact":
        return 0.0
    queries = open_vectors(stage.index.file("vectors.npy"))[: stage.batch_size]
    index = open_index(stage.index.path, str(pick_device(stage.device)))
    index.search(queries, 1)
    start = time.monotonic()
    index.search(queries, 1)
    return (time.monotonic() - start) * stage.batch_size / max(1, len(queries))
