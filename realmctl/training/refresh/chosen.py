"""The refresh that the settings of a run ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.execution import processes
from realmctl.index.build import IndexOptions
from realmctl.training.refresh.background import BackgroundRefresh, ExternalRefresh
from realmctl.training.refresh.index_maker import dtype_of
from realmctl.training.refresh.pace import Pace
from realmctl.training.refresh.refresh import InlineRefresh, NoRefresh, Refresh
from realmctl.training.refresh.refresh_folder import RefreshFolder, RefreshRequest
from realmctl.training.refresh.shared import FollowingRefresh


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
    kind: Literal["background", "inline", "never"], places: RefreshPlaces, pace: Callable[[], Pace],
    held: Callable[[], Sequence[int]], max_age: int,
) -> Refresh:  # fmt: skip
    """Return the refresh of this process. All processes but the first follow it.

    Args:
        kind: What refreshes the index.
        places: Where.
        pace: Makes what decides when a snapshot is due.
        held: Returns the steps of the indexes that checkpoints need.
        max_age: Steps after which training waits for a fresher index.
    """
    if kind == "never":
        return NoRefresh()
    if not processes.is_first():
        return FollowingRefresh(places.folder)
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
        options = IndexOptions.from_settings(index.settings).recorded()
        place, dtype = str(blocks.path.resolve()), dtype_of(index)
        folder.place(RefreshRequest(blocks=place, index=options, dtype=dtype, precision=precision))
    return folder
