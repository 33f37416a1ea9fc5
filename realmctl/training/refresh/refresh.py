"""How the trainer keeps its index fresh. The training loop sees `Refresh` alone; it has no `if background`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from realmctl.artifacts import Artifact, Origin, open_artifact
from realmctl.errors import InputError
from realmctl.nn.retriever import Retriever
from realmctl.training.refresh.refresh_folder import (
    KEPT_INDEXES,
    IndexMaker,
    RefreshFolder,
    at_step,
    prune,
    steps_in,
    take_snapshot,
)


class Refresh(Protocol):
    """All that the training loop sees. Steps are those taken so far."""

    def begin(self, step: int) -> None:
        """Training starts, or goes on, after this many steps."""
        ...

    def offer(self, step: int, retriever: Retriever) -> None:
        """Commit a snapshot when one is due at this step."""
        ...

    def newest(self) -> tuple[int, Artifact] | None:
        """The newest index of a snapshot of this run, with its step, if it has not been handed out yet."""
        ...

    def at(self, step: int) -> Artifact:
        """The index of exactly this step: what a checkpoint was taken with."""
        ...

    def snapshot(self, step: int) -> Artifact:
        """The retriever that the index of this step is of."""
        ...

    def hold(self, step: int) -> None:
        """Say that the index of this step is in use."""
        ...

    def too_old(self, step: int, index_step: int) -> bool:
        """Whether training must wait for a fresher index."""
        ...

    def close(self) -> None:
        """Stop what runs beside the training."""
        ...


class NoRefresh:
    """The index stays the one that training began with."""

    def begin(self, step: int) -> None:
        pass

    def offer(self, step: int, retriever: Retriever) -> None:
        pass

    def newest(self) -> tuple[int, Artifact] | None:
        return None

    def at(self, step: int) -> Artifact:
        raise InputError(f"There is no index of step {step}: this run never refreshes.")

    snapshot = at

    def hold(self, step: int) -> None:
        pass

    def too_old(self, step: int, index_step: int) -> bool:
        return False

    def close(self) -> None:
        pass


class FolderRefresh:
    """What all real ways share: snapshots out and indexes in, through the live folder.

    `held` says which steps' indexes the checkpoints need. An index counts only if it is made from the very snapshot
    of its step: a refresher that outlived an earlier run of this training may still deliver one that is not.
    """

    def __init__(
        self, live: RefreshFolder, origin: Origin, tokenizer: Path, every: int, held: Callable[[], Sequence[int]]
    ) -> None:
        self.live, self._origin, self._tokenizer, self._every, self._held = live, origin, tokenizer, every, held
        self._snapshots: dict[int, str] = {}
        self._handed_out = 0

    @property
    def behind(self) -> bool:
        """Whether there is a snapshot whose index has not come yet."""
        return max(self._snapshots, default=0) > self._handed_out

    def begin(self, step: int) -> None:
        """Forget what a run that got further than its last checkpoint left behind: those steps are taken again."""
        for folder in (self.live.snapshots, self.live.indexes):
            for later in (at for at in steps_in(folder) if at > step):
                shutil.rmtree(at_step(folder, later))
        self._snapshots = {
            at: open_artifact(at_step(self.live.snapshots, at)).content for at in steps_in(self.live.snapshots)
        }

    def offer(self, step: int, retriever: Retriever) -> None:
        if step > 0 and step % self._every == 0:
            snapshot = take_snapshot(self.live, self._origin, step, retriever, self._tokenizer)
            self._snapshots[step] = snapshot.content
            self._taken(step, snapshot)

    def _taken(self, step: int, snapshot: Artifact) -> None:
        """A snapshot lies ready."""

    def newest(self) -> tuple[int, Artifact] | None:
        fresh = [at for at in steps_in(self.live.indexes) if at > self._handed_out and at in self._snapshots]
        for at in reversed(fresh):
            try:
                index = self.at(at)
            except (InputError, OSError):
                continue  # not of this run, and being replaced
            if index.lineage.get("retriever") == self._snapshots[at]:
                self._handed_out = at
                return at, index
        return None

    def at(self, step: int) -> Artifact:
        return open_artifact(at_step(self.live.indexes, step))

    def snapshot(self, step: int) -> Artifact:
        return open_artifact(at_step(self.live.snapshots, step))

    def hold(self, step: int) -> None:
        self.live.hold([step, *self._held()])

    def too_old(self, step: int, index_step: int) -> bool:
        return False

    def close(self) -> None:
        pass


class InlineRefresh(FolderRefresh):
    """There and then, in this process: deterministic, for tests and CI."""

    def __init__(
        self,
        live: RefreshFolder,
        origin: Origin,
        tokenizer: Path,
        every: int,
        held: Callable[[], Sequence[int]],
        device: str,
    ) -> None:
        super().__init__(live, origin, tokenizer, every, held)
        self._maker = IndexMaker(live.order(), device)

    def _taken(self, step: int, snapshot: Artifact) -> None:
        if step not in steps_in(self.live.indexes):
            self._maker.make(snapshot, at_step(self.live.indexes, step))
            prune(self.live.indexes, KEPT_INDEXES, self.live.held())
