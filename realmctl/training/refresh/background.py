"""Index refresh by a separate process: a child of the trainer, or a refresher that the user starts on another GPU or host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from realmctl.artifacts import MANIFEST, Artifact, Origin
from realmctl.log import say
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.training.refresh.pace import Pace
from realmctl.training.refresh.refresh import FolderRefresh
from realmctl.training.refresh.refresh_folder import RefreshFolder, at_step
from realmctl.training.refresh.refresher_process import RefresherProcess
from realmctl.training.refresh.threads import DividedThreads


class SeparateProcessRefresh(FolderRefresh):
    """Base of the refreshes whose indexes another process builds while training continues.

    Args:
        max_age: Number of steps after which training waits for a fresher index.
        device: Device on which this process rebuilds a damaged index.
    """

    def __init__(
        self,
        folder: RefreshFolder,
        origin: Origin,
        tokenizer: Path,
        pace: Pace,
        held: Callable[[], Sequence[int]],
        max_age: int,
        device: str = "auto",
    ) -> None:
        super().__init__(folder, origin, tokenizer, pace, held, device)
        self._max_age = max_age

    def too_old(self, step: int, index_step: int) -> bool:
        return step - index_step > self._max_age

    def _is_due(self, step: int, retriever: Retriever) -> bool:
        """Return whether a snapshot is due. It is also due when the refresher found the newest one damaged."""
        newest = max(self._snapshots, default=0)
        if self.pending and not (at_step(self.folder.snapshots, newest) / MANIFEST).is_file():
            del self._snapshots[newest]
            return step > 0
        return super()._is_due(step, retriever)


class ExternalRefresh(SeparateProcessRefresh):
    """The user starts the refresher with `realmctl refresh`, on another GPU or on a host that shares the folder."""

    def begin(self, step: int) -> None:
        super().begin(step)
        say(f"pretrain: waiting for indexes from a refresher that you start: realmctl refresh {self.folder.path}")


class BackgroundRefresh(SeparateProcessRefresh):
    """The refresher is a child process. It is started again when it dies or makes no progress.

    Where the child computes on the CPU, trainer and child share the threads that PyTorch would give the trainer alone,
    while the child has work.

    Args:
        refresher_device: Device of the child.
    """

    def __init__(
        self,
        folder: RefreshFolder,
        origin: Origin,
        tokenizer: Path,
        pace: Pace,
        held: Callable[[], Sequence[int]],
        max_age: int,
        refresher_device: str,
        device: str = "auto",
    ) -> None:
        super().__init__(folder, origin, tokenizer, pace, held, max_age, device)
        self._threads = DividedThreads() if pick_device(refresher_device).type == "cpu" else None
        self.process = RefresherProcess(folder, refresher_device, self._threads.refresher if self._threads else None)

    def begin(self, step: int) -> None:
        super().begin(step)
        self.process.watch(self.pending)

    def offer(self, step: int, retriever: Retriever) -> None:
        super().offer(step, retriever)
        self.process.watch(self.pending)

    def newest(self) -> tuple[int, Artifact] | None:
        found = super().newest()
        if found is not None:
            self.process.failures = 0
        if self._threads:
            self._threads.lend(self.pending)
        return found

    def close(self) -> None:
        self.process.stop()
        if self._threads:
            self._threads.lend(False)
