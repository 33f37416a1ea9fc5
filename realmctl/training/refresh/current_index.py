"""The index that pre-training searches: swapped between steps as fresher ones come, waited for when it is too old."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.execution.signals import StopRequested, asked_to_stop
from realmctl.index.protocol import Index
from realmctl.index.store import open_index
from realmctl.log import say
from realmctl.nn.retriever import Retriever
from realmctl.training.refresh.refresh import Refresh

WAIT_SECONDS = 0.05


class CurrentIndex:
    """Holds one index, `index`, of the snapshot of step `step` (0: the one that training began with).

    Given the retriever that the first one is of, it holds that of the index too, `encoder`; else that is None.
    """

    def __init__(self, first: Artifact, refresh: Refresh, device: str, retriever: Artifact | None = None) -> None:
        self.index: Index = open_index(first.path, device)
        self.encoder = Retriever.load(retriever.path).to(device) if retriever else None
        self.step = 0
        self._refresh, self._device, self._begun = refresh, device, False

    def renew(self, step: int, retriever: Retriever) -> dict[str, float]:
        """Between steps: offer a snapshot when it is time, take a fresher index when there is one, wait when ours is too old.

        Returns `index_age_steps`, and `index_wait_seconds` where it waited. Raises StopRequested from within a wait.
        """
        if not self._begun:
            self._refresh.begin(step)
            self._refresh.hold(self.step)
            self._begun = True
        self._refresh.offer(step, retriever)
        self._swap(self._refresh.newest())
        waited = self._wait(step)
        return {"index_age_steps": step - self.step, **({"index_wait_seconds": waited} if waited else {})}

    def state(self) -> dict[str, Any]:
        """For a checkpoint: the index that the next step starts with."""
        return {"index_step": self.step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Open the index that the checkpoint was taken with. Raises InputError when it is gone or damaged."""
        step = int(state["index_step"])
        if step:
            self._swap((step, self._refresh.at(step)))

    def _swap(self, fresh: tuple[int, Artifact] | None) -> None:
        if fresh is not None and fresh[0] > self.step:
            self.step, self.index = fresh[0], open_index(fresh[1].path, self._device)
            if self.encoder is not None:
                self.encoder = Retriever.load(self._refresh.snapshot(self.step).path).to(self._device)
            self._refresh.hold(self.step)

    def _wait(self, step: int) -> float:
        if not self._refresh.too_old(step, self.step):
            return 0.0
        start = time.monotonic()
        say(f"pretrain: step {step}: the index is {step - self.step} steps old, waiting for a fresher one")
        while self._refresh.too_old(step, self.step):
            if asked_to_stop():
                raise StopRequested
            time.sleep(WAIT_SECONDS)
            self._swap(self._refresh.newest())
        return time.monotonic() - start
