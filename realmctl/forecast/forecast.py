"""The forecast of a run: a row for each stage, and the age of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from realmctl.forecast.chain import PlannedStage
from realmctl.forecast.costs import BYTES_OF_A_TRAINED_WEIGHT, Cost, Made, ShapeOf, cost_of
from realmctl.forecast.machines import NETWORK_BYTES_PER_SECOND, Machines
from realmctl.forecast.simulation import IndexAges, Refreshing, devices_for_age, simulate
from realmctl.forecast.sizes import Text

SIMULATED_STEPS = 20_000
"""Steps that the simulation takes. A longer run is like these many times over."""
PERIOD_OF_AUTO = 500
"""Steps between two refreshes that stand for `--refresh-every auto`, which follows the drift: about as many as in the REALM paper (section 3.3)."""


@dataclass(frozen=True)
class Row:
    """One stage. `seconds` is None, and the other numbers are 0, for a stage whose cost is not known.

    Attributes:
        flops: Floating-point operations of training and embedding; 0 for stages that compute on text.
        memory_bytes: Peak on one device.
        micro_batch: Rows that one device computes at once in that memory; 0 means its whole part of the batch.
        network_bytes: Sent by all devices together.
    """

    name: str
    command: str
    seconds: float | None
    flops: float = 0.0
    memory_bytes: float = 0.0
    micro_batch: int = 0
    disk_bytes: float = 0.0
    network_bytes: float = 0.0
    device_hours: float = 0.0


@dataclass(frozen=True)
class Forecast:
    """All stages, and what the simulation says of `pretrain`.

    Attributes:
        refresh_seconds: Time of one refresh.
        devices_for_age: Refresher devices for the target age; None if none was asked for, or if no number is enough.
    """

    rows: Sequence[Row]
    ages: IndexAges | None
    refresh_seconds: float | None
    devices_for_age: int | None


def forecast(
    chain: Sequence[PlannedStage],
    texts: Mapping[str, Text],
    machines: Machines,
    shape_of: ShapeOf,
    target_age: int | None = None,
) -> Forecast:
    """Forecast every stage of a chain.

    Args:
        chain: The stages, in the order in which they can run.
        texts: {output: its blocks} of the chunk stages.
        machines: The devices.
        shape_of: The shape of a BERT by the value of `--bert`.
        target_age: Index age in steps that 95 % of the steps should keep.
    """
    made, rows = Made(), []
    ages: IndexAges | None = None
    refresh_seconds: float | None = None
    enough: int | None = None
    for stage in chain:
        cost = cost_of(stage, made, texts.get(stage.name), shape_of)
        if cost is None:
            rows.append(Row(stage.name, stage.command, None))
            continue
        network = _network_bytes(cost, machines)
        seconds = machines.seconds(stage.name, cost)
        if seconds is not None:
            seconds += network / machines.used_by(cost) / NETWORK_BYTES_PER_SECOND
            if minutes := stage.settings.get("minutes"):
                seconds = min(seconds, 60.0 * minutes)
        devices = machines.used_by(cost)
        if seconds is not None and cost.refreshed and stage.settings["refresh"] != "never":
            alone = machines.refresh_seconds(cost.refreshed.flops)
            if alone is not None:
                build = machines.build_seconds(cost.refreshed.index)
                run = _refreshing(stage, seconds, alone, build, machines)
                found = simulate(run)
                ages, refresh_seconds = found, run.embed_seconds + run.build_seconds
                if target_age:
                    enough = devices_for_age(target_age, _refreshing(stage, seconds, alone, build, machines, 1))
                seconds = found.seconds * (cost.steps / run.steps)
                devices += machines.refresh_devices
                network += cost.refreshed.nbytes * machines.devices * (cost.steps // _period(stage.settings))
        memory, micro = _memory(cost, machines)
        flops = cost.work if cost.kind in ("train", "embed") else 0.0
        hours = devices * (seconds or 0.0) / 3600
        rows.append(Row(stage.name, stage.command, seconds, flops, memory, micro, cost.disk_bytes, network, hours))
    return Forecast(rows, ages, refresh_seconds, enough)


def _refreshing(
    stage: PlannedStage, seconds: float, alone: float, build: float, machines: Machines, refresh_devices: int = 0
) -> Refreshing:
    """What to simulate for `pretrain`, at most SIMULATED_STEPS steps."""
    settings: Mapping[str, Any] = stage.settings
    every = _period(settings)
    own = refresh_devices or machines.refresh_devices
    return Refreshing(
        steps=min(settings["steps"], max(SIMULATED_STEPS, 40 * every)),
        step_seconds=seconds / settings["steps"],
        every=every,
        embed_seconds=alone / (own or machines.devices),
        build_seconds=build,
        max_age=_max_age(settings),
        shared=not own,
        inline=settings["refresh"] == "inline",
    )


def _period(settings: Mapping[str, Any]) -> int:
    """Steps between two refreshes; with `auto` the number that stands for it."""
    return PERIOD_OF_AUTO if settings["refresh_every"] == "auto" else int(settings["refresh_every"])


def _max_age(settings: Mapping[str, Any]) -> int | None:
    """The age of the index at which training waits; None where it never does."""
    if settings["refresh"] != "background":
        return None
    default = None if settings["refresh_every"] == "auto" else 3 * _period(settings)
    return settings.get("max_index_age") or default


def _network_bytes(cost: Cost, machines: Machines) -> float:
    """Bytes that the gradients' all-reduce sends: each device sends 2 (n-1)/n of them in a step."""
    return cost.steps * 2 * (machines.used_by(cost) - 1) * 4 * cost.weights


def _memory(cost: Cost, machines: Machines) -> tuple[float, int]:
    """Return the peak of one device, and the micro-batch that it needs (0 for none).

    Without a memory limit, or if a single row does not fit, the peak is that of one device's part of the batch, or of a row.
    """
    held = cost.held_bytes + (BYTES_OF_A_TRAINED_WEIGHT if cost.steps else 4) * cost.weights
    rows = max(1, -(-cost.rows // machines.devices))
    whole = held + rows * cost.row_bytes
    if not cost.row_bytes or machines.memory_bytes is None or whole <= machines.memory_bytes:
        return whole, 0
    fitting = max(1, int((machines.memory_bytes - held) / cost.row_bytes))
    return held + fitting * cost.row_bytes, fitting
