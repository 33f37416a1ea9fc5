"""Index refresh with several training processes: the first one decides, and all of them swap at the same step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.errors import InputError
from realmctl.execution import processes
from realmctl.execution.signals import StopRequested, asked_to_stop
from realmctl.models.retriever import Retriever
from realmctl.training import data_parallel
from realmctl.training.refresh.refresh import NoRefresh, Refresh
from realmctl.training.refresh.refresh_folder import RefreshFolder, at_step


class FollowingRefresh(NoRefresh):
    """What a process other than the first does: it reads the indexes and snapshots that a checkpoint names."""

    def __init__(self, folder: RefreshFolder) -> None:
        self._folder = folder

    def at(self, step: int, content: str) -> Artifact:
        return self._whole(at_step(self._folder.indexes, step))

    def snapshot(self, step: int) -> Artifact:
        return self._whole(at_step(self._folder.snapshots, step))

    def _whole(self, path: Path) -> Artifact:
        found = self._folder.whole(path)
        if found is None:
            raise InputError(
                f"{processes.name()} does not see {path}, which the first process uses, or it is damaged. All processes must "
                "see the folder of the run."
            )
        return found


class SharedRefresh:
    """The refresh of the first process, whose decisions all processes follow (`refresh.Refresh`).

    All processes must call `newest` and `too_old` at the same time.

    Args:
        own: The refresh of the run in the first process, `FollowingRefresh` in the others.
    """

    def __init__(self, own: Refresh) -> None:
        self._own = own

    @property
    def reproducible(self) -> bool:
        return self._own.reproducible

    def begin(self, step: int) -> None:
        self._own.begin(step)

    def offer(self, step: int, retriever: Retriever) -> None:
        self._own.offer(step, retriever)

    def newest(self) -> tuple[int, Artifact] | None:
        found = self._own.newest()
        told = data_parallel.from_first([found[0], str(found[1].path), found[1].content] if found else None)
        if told is None:
            return None
        step, path, content = told
        if found is None:
            index = open_artifact(Path(path))
            verify(index)
            if index.content != content:
                raise InputError(f"{processes.name()} sees another index in {path} than the first process does.")
            found = step, index
        data_parallel.anyone(False)  # nobody goes on before all have opened it
        return found

    def at(self, step: int, content: str) -> Artifact:
        return self._own.at(step, content)

    def snapshot(self, step: int) -> Artifact:
        return self._own.snapshot(step)

    def hold(self, step: int) -> None:
        self._own.hold(step)

    def too_old(self, step: int, index_step: int) -> bool:
        """Whether the first process must wait.

        Raises:
            StopRequested: A process was asked to stop. All of them stop then, at the same step.
        """
        answers = data_parallel.exchange([self._own.too_old(step, index_step), asked_to_stop()])
        if answers[0][0] and any(stop for _, stop in answers):
            raise StopRequested
        return bool(answers[0][0])

    def state(self) -> Mapping[str, Any]:
        return self._own.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._own.restore(state)

    def close(self) -> None:
        self._own.close()
