"""The refresh that the settings of a run ask for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.execution import processes
from realmctl.index.index_type import IndexOptions
from realmctl.log import warn
from realmctl.training.refresh.background import BackgroundRefresh, ExternalRefresh
from realmctl.training.refresh.index_maker import dtype_of
from realmctl.training.refresh.journal import JOURNAL, Journal
from realmctl.training.refresh.lockstep import LockstepRefresh
from realmctl.training.refresh.pace import Pace
from realmctl.training.refresh.refresh import InlineRefresh, NoRefresh, Refresh
from realmctl.training.refresh.refresh_folder import RefreshFolder, RefreshRequest
from realmctl.training.refresh.shared import FollowingRefresh, SharedRefresh

RefreshKind = Literal["background", "lockstep", "inline", "never"]


@dataclass(frozen=True)
class RefreshPlaces:
    """Where snapshots and indexes are made.

    Attributes:
        folder: The folder that trainer and refresher share.
        origin: Origin of the snapshots.
        tokenizer: Folder of the tokenizer.
        device: Device of the trainer.
        refresh_device: Device of the background refresher, or `elsewhere`.
    """

    folder: RefreshFolder
    origin: Origin
    tokenizer: Path
    device: str
    refresh_device: str


def chosen_refresh(
    kind: RefreshKind,
    places: RefreshPlaces,
    pace: Callable[[], Pace],
    held: Callable[[], Sequence[int]],
    max_age: int,
    every: int,
) -> Refresh:
    """Return the refresh of this process. All processes but the first follow it.

    Args:
        kind: What refreshes the index.
        places: Where.
        pace: Makes what decides when a snapshot is due.
        held: Returns the steps of the indexes that checkpoints need.
        max_age: Steps after which training waits for a fresher index.
        every: Steps between snapshots in lockstep.
    """
    if kind == "never":
        return NoRefresh()
    if not processes.is_first():
        return SharedRefresh(FollowingRefresh(places.folder))
    own = _own_refresh(kind, places, pace, held, max_age, every)
    return SharedRefresh(own) if processes.world_size() > 1 else own


def _own_refresh(
    kind: RefreshKind,
    places: RefreshPlaces,
    pace: Callable[[], Pace],
    held: Callable[[], Sequence[int]],
    max_age: int,
    every: int,
) -> Refresh:
    """Return the refresh of the first process."""
    if kind == "lockstep":
        refresher = None if places.refresh_device == "elsewhere" else places.refresh_device
        return LockstepRefresh(places.folder, places.origin, places.tokenizer, every, held, refresher, places.device)
    common = places.folder, places.origin, places.tokenizer, pace(), held
    if kind == "inline":
        return InlineRefresh(*common, places.device)
    if places.refresh_device == "elsewhere":
        return ExternalRefresh(*common, max_age, places.device)
    return BackgroundRefresh(*common, max_age, places.refresh_device, places.device)


def placed_folder(
    out: Writer, blocks: Artifact, index: Artifact, precision: str, snapshot_queries: bool
) -> RefreshFolder:
    """Return the folder of a run, in which the first process leaves the request for indexes like the one it starts with."""
    folder = RefreshFolder(out.scratch("live").resolve(), snapshot_queries)
    if processes.is_first():
        options = asdict(IndexOptions.from_settings(index.settings))
        place, dtype = str(blocks.path.resolve()), dtype_of(index)
        folder.place(RefreshRequest(blocks=place, index=options, dtype=dtype, precision=precision))
    return folder


def journal_of(kind: RefreshKind, out: Writer) -> Journal:
    """Return the journal of a run's swaps. It writes nothing in other processes than the first, and without a refresh."""
    return Journal(out.file(JOURNAL) if kind != "never" and processes.is_first() else None)


def counted_refreshes(metrics: Path, kind: RefreshKind, every: int, steps: int) -> int:
    """Return how many refreshed indexes a run used, from its `metrics.jsonl`. Warns if there were none though it asked for them."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    made_at = {line["step"] - 1 - line["index_age_steps"] for line in lines if "index_age_steps" in line}
    used = len(made_at - {0})
    if not used and kind != "never" and every < steps:
        warn(
            f"pretrain: no refreshed index was used, though --refresh {kind} asks for one: none was ready before the "
            f"last of {steps} steps. Use a smaller --refresh-every, more --steps, or --refresh inline, which waits."
        )
    return used
