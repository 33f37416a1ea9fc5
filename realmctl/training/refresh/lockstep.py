"""Index refresh at fixed steps: another process builds the index, and no delay of either process changes the result.

The snapshot of step s goes into use as an index at step s + `every`, never earlier and never later. The trainer waits when
it is not ready. Meanwhile it trains with the index before it, as in the background mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from realmctl.artifacts import MANIFEST, Artifact, Origin
from realmctl.errors import InputError
from realmctl.log import say
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.training.refresh.pace import EverySteps
from realmctl.training.refresh.refresh import FolderRefresh
from realmctl.training.refresh.refresh_folder import RefreshFolder, at_step, steps_in
from realmctl.training.refresh.refresher_process import RefresherProcess
from realmctl.training.refresh.threads import DividedThreads


class LockstepRefresh(FolderRefresh):
    """The index of each snapshot goes into use one refresh period after the snapshot.

    A snapshot is taken only after the index of the one before it is in use. So the newest snapshot is the only one whose
    index may be missing, and a refresher that was started again makes the right one.

    Args:
        refresher_device: Device of the child that builds the indexes; None when the user starts the refresher.
        device: Device on which this process rebuilds a damaged index.
    """

    reproducible = True

    def __init__(
        self,
        folder: RefreshFolder,
        origin: Origin,
        tokenizer: Path,
        every: int,
        held: Callable[[], Sequence[int]],
        refresher_device: str | None,
        device: str = "auto",
    ) -> None:
        super().__init__(folder, origin, tokenizer, EverySteps(every), held, device)
        self._every = every
        self._step = 0
        self._threads: DividedThreads | None = None
        self._process: RefresherProcess | None = None
        if refresher_device is not None:
            self._threads = DividedThreads() if pick_device(refresher_device).type == "cpu" else None
            threads = self._threads.refresher if self._threads else None
            self._process = RefresherProcess(folder, refresher_device, threads)

    @property
    def pending(self) -> bool:
        """Whether the newest snapshot has no index yet."""
        return super().pending and max(self._snapshots) not in steps_in(self.folder.indexes)

    def due(self, step: int) -> int:
        """Return the step of the snapshot whose index is in use at `step`; 0 for the index that training began with."""
        return max(0, step // self._every - 1) * self._every

    def begin(self, step: int) -> None:
        super().begin(step)
        if self._threads:  # the same number in every step, because it can change the last bits of a sum
            self._threads.lend(True)
        if self._process is None:
            say(f"pretrain: waiting for indexes from a refresher that you start: realmctl refresh {self.folder.path}")
        self._watch()

    def offer(self, step: int, retriever: Retriever) -> None:
        self._step = step
        if self._last_returned >= self.due(step):
            super().offer(step, retriever)
        self._watch()

    def newest(self) -> tuple[int, Artifact] | None:
        """Return the index that is due at the step of the last `offer`, as soon as it is there.

        Raises:
            InputError: Its snapshot is damaged or gone.
        """
        due = self.due(self._step)
        if due <= self._last_returned:
            return None
        self._require_snapshot(due)
        path = at_step(self.folder.indexes, due)
        index = self.folder.whole(path, self._snapshots[due]) if due in steps_in(self.folder.indexes) else None
        if index is None and due < max(
            self._snapshots
        ):  # it was in use before, and the refresher makes the newest one alone
            index = self.at(due, "")
        if index is None:
            return None
        if self._process:
            self._process.failures = 0
        self._last_returned = due
        return due, index

    def too_old(self, step: int, index_step: int) -> bool:
        return index_step < self.due(step)

    def state(self) -> Mapping[str, Any]:
        """Return the newest snapshot, step and content hash, if its index will go into use later."""
        step = max(self._snapshots, default=0)
        return {"awaited": [step, self._snapshots[step]]} if step > self._last_returned else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        if "awaited" not in state:
            return
        step, content = state["awaited"]
        if self.snapshot(step).content != content:
            raise InputError(f"{at_step(self.folder.snapshots, step)} is not the snapshot that the checkpoint names.")

    def close(self) -> None:
        if self._process:
            self._process.stop()
        if self._threads:
            self._threads.lend(False)

    def _watch(self) -> None:
        if self._process:
            self._process.watch(self.pending)

    def _require_snapshot(self, step: int) -> None:
        path = at_step(self.folder.snapshots, step)
        if step not in self._snapshots or not (path / MANIFEST).is_file():
            raise InputError(
                f"The snapshot {path} was damaged before its index was in use, and it cannot be taken again at this step. "
                "Run the same command again: training continues from a checkpoint before it."
            )
