"""Index refresh as the trainer uses it.

The objective depends only on the protocol `Refresh`, not on which process builds the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from realmctl.artifacts import Artifact, Origin
from realmctl.errors import InputError
from realmctl.log import warn
from realmctl.models.retriever import Retriever
from realmctl.training.refresh.index_maker import IndexMaker, take_snapshot
from realmctl.training.refresh.pace import Pace
from realmctl.training.refresh.refresh_folder import KEPT_INDEXES, RefreshFolder, at_step, prune, remove, steps_in


class Refresh(Protocol):
    """The interface between the objective and index refresh. A step is the number of training steps taken so far."""

    @property
    def reproducible(self) -> bool:
        """Whether the steps at which indexes go into use depend on no timing."""
        ...

    def begin(self, step: int) -> None:
        """Start, once before the first step of this process. Training starts or resumes after `step` steps."""
        ...

    def offer(self, step: int, retriever: Retriever) -> None:
        """Commit a snapshot of the retriever when one is due at this step. May be called again for the same step."""
        ...

    def newest(self) -> tuple[int, Artifact] | None:
        """Return the newest index of this run and its step, with every byte verified; None if it was returned before."""
        ...

    def at(self, step: int, content: str) -> Artifact:
        """Return the index of exactly this step, which a checkpoint names, with every byte verified.

        Args:
            step: Step of its snapshot.
            content: Content hash that the checkpoint recorded; empty when none did.

        Raises:
            InputError: The index is gone or damaged and cannot be built again.
        """
        ...

    def snapshot(self, step: int) -> Artifact:
        """Return the snapshot that the index of this step was made with, with every byte verified.

        Raises:
            InputError: It is gone or damaged.
        """
        ...

    def hold(self, step: int) -> None:
        """Record that the index of this step is in use."""
        ...

    def too_old(self, step: int, index_step: int) -> bool:
        """Return whether training at `step` must wait for an index that is fresher than the index of `index_step`."""
        ...

    def state(self) -> Mapping[str, Any]:
        """Return what a checkpoint must keep."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Check that what `state` returned is still there.

        Raises:
            InputError: A snapshot that it names is gone or damaged.
        """
        ...

    def close(self) -> None:
        """End the refresher if this process started it."""
        ...


class NoRefresh:
    """No refresh: the index that training started with stays in use."""

    reproducible = True

    def begin(self, step: int) -> None:
        pass

    def offer(self, step: int, retriever: Retriever) -> None:
        pass

    def newest(self) -> tuple[int, Artifact] | None:
        return None

    def at(self, step: int, content: str) -> Artifact:
        raise InputError(f"There is no index of step {step}: this run never refreshes.")

    def snapshot(self, step: int) -> Artifact:
        raise InputError(f"There is no snapshot of step {step}: this run never refreshes.")

    def hold(self, step: int) -> None:
        pass

    def too_old(self, step: int, index_step: int) -> bool:
        return False

    def state(self) -> Mapping[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


class FolderRefresh:
    """Base of every refresh that exchanges snapshots and indexes through a `RefreshFolder`.

    An index counts only if it was made with the snapshot that this run took at its step: a refresher that was started for
    an earlier run of this training may still deliver another one.

    Args:
        folder: The shared folder, with the request in it.
        origin: Origin of the snapshots.
        tokenizer: Folder of the tokenizer; every snapshot has a copy.
        pace: Decides when a snapshot is due.
        held: Returns the steps whose indexes the checkpoints need.
        device: Device on which this process rebuilds a damaged index.
    """

    reproducible = False

    def __init__(
        self,
        folder: RefreshFolder,
        origin: Origin,
        tokenizer: Path,
        pace: Pace,
        held: Callable[[], Sequence[int]],
        device: str,
    ) -> None:
        self.folder, self._origin, self._tokenizer, self._pace, self._held = folder, origin, tokenizer, pace, held
        self._device = device
        self._snapshots: dict[int, str] = {}
        self._last_returned = 0

    @cached_property
    def maker(self) -> IndexMaker:
        """Builds indexes in this process."""
        return IndexMaker(self.folder.request(), self._device)

    @property
    def pending(self) -> bool:
        """Whether there is a snapshot newer than the last index that `newest` returned."""
        return max(self._snapshots, default=0) > self._last_returned

    def begin(self, step: int) -> None:
        """Remove snapshots and indexes of later steps, which will be taken again, and verify the snapshots that stay."""
        for folder in (self.folder.snapshots, self.folder.indexes):
            for later in (at for at in steps_in(folder) if at > step):
                remove(at_step(folder, later))
        found = {at: self.folder.whole(at_step(self.folder.snapshots, at)) for at in steps_in(self.folder.snapshots)}
        whole = {at: snapshot for at, snapshot in found.items() if snapshot}
        self._snapshots = {at: snapshot.content for at, snapshot in whole.items()}
        self._pace.start(whole[max(whole)] if whole else None)

    def offer(self, step: int, retriever: Retriever) -> None:
        if self._is_due(step, retriever):
            snapshot = take_snapshot(self.folder, self._origin, step, retriever, self._tokenizer)
            self._snapshots[step] = snapshot.content

    def _is_due(self, step: int, retriever: Retriever) -> bool:
        return step > 0 and step not in self._snapshots and self._pace.is_due(step, retriever)

    def newest(self) -> tuple[int, Artifact] | None:
        fresh = [at for at in steps_in(self.folder.indexes) if at > self._last_returned and at in self._snapshots]
        for at in reversed(fresh):
            index = self.folder.whole(at_step(self.folder.indexes, at), self._snapshots[at])
            if index is None or (self.folder.snapshots_search and not self._has_snapshot(at)):
                continue
            self._last_returned = at
            return at, index
        return None

    def _has_snapshot(self, step: int) -> bool:
        return self.folder.whole(at_step(self.folder.snapshots, step)) is not None

    def at(self, step: int, content: str) -> Artifact:
        path = at_step(self.folder.indexes, step)
        index = self.folder.whole(path)
        if index is not None and index.content == content:
            return index
        snapshot = self.snapshot(step)
        if index is not None and index.lineage.get("retriever") == snapshot.content:
            return index  # built again after the checkpoint was written
        warn(f"the index of step {step} is built again from its snapshot")
        index = self.maker.make(snapshot, path)
        if content and index.content != content:
            warn(
                f"the new index of step {step} is not equal to the lost one bit for bit; other "
                f"hardware rounds differently"
            )
        return index

    def snapshot(self, step: int) -> Artifact:
        path = at_step(self.folder.snapshots, step)
        snapshot = self.folder.whole(path)
        if snapshot is None:
            raise InputError(f"The snapshot {path} is gone or damaged, so the index of step {step} cannot be used.")
        return snapshot

    def hold(self, step: int) -> None:
        self._last_returned = max(self._last_returned, step)
        self.folder.hold([step, *self._held()])

    def too_old(self, step: int, index_step: int) -> bool:
        return False

    def state(self) -> Mapping[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


class InlineRefresh(FolderRefresh):
    """The trainer builds each index itself, as soon as the snapshot is taken.

    This is deterministic, and suits tests and small corpora.
    """

    reproducible = True

    def newest(self) -> tuple[int, Artifact] | None:
        found = super().newest()
        if found is None and self.pending:
            step = max(self._snapshots)
            self.maker.make(self.snapshot(step), at_step(self.folder.indexes, step))
            prune(self.folder.indexes, KEPT_INDEXES, self.folder.held())
            found = super().newest()
        return found
