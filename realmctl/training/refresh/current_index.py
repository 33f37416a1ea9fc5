"""The index that pre-training searches. It is replaced between steps; training waits for a fresher one when it is too old."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.execution.signals import StopRequested, asked_to_stop
from realmctl.index.protocol import Index
from realmctl.index.store import open_index
from realmctl.log import say
from realmctl.nn.retriever import Retriever
from realmctl.training.refresh.refresh import Refresh

WAIT_SECONDS = 0.05


def refreshes_used(metrics: Path) -> int:
    """Return how many refreshed indexes the steps of a run used, from its `metrics.jsonl`."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    made_at = {line["step"] - 1 - line["index_age_steps"] for line in lines if "index_age_steps" in line}
    return len(made_at - {0})


class CurrentIndex:
    """The index in use, `index`, which was made with the snapshot of step `step` (0: the index that training began with).

    Args:
        first: The index that training begins with.
        refresh: The source of fresher indexes.
        device: Device of the search.
        retriever: The retriever that `first` was made with, if queries are embedded with the retriever of the index.
            `encoder` is then the retriever of the index in use; otherwise it is None.
        opener: Opens the index in a folder on a device.
    """

    def __init__(
        self,
        first: Artifact,
        refresh: Refresh,
        device: str,
        retriever: Artifact | None = None,
        *,
        opener: Callable[[Path, str], Index] = open_index,
    ) -> None:
        self._open = opener
        self.index: Index = opener(first.path, device)
        self.encoder = Retriever.load(retriever.path).to(device) if retriever else None
        self.step, self._content = 0, first.content
        self._refresh, self._device, self._begun = refresh, device, False

    def renew(self, step: int, retriever: Retriever) -> dict[str, float]:
        """Offer a snapshot when one is due, switch to a fresher index, and wait if the index is too old.

        Args:
            step: Number of training steps taken so far.
            retriever: The retriever being trained.

        Returns:
            `index_age_steps`, and `index_wait_seconds` if it waited.

        Raises:
            StopRequested: The run was asked to stop during the wait.
        """
        if not self._begun:
            self._refresh.begin(step)
            self._refresh.hold(self.step)
            self._begun = True
        self._refresh.offer(step, retriever)
        self._take(self._refresh.newest())
        waited = self._wait(step, retriever)
        return {"index_age_steps": step - self.step, **({"index_wait_seconds": waited} if waited else {})}

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint records: step and content hash of the index that the next training step starts with."""
        return {"index_step": self.step, "index": self._content}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Open the index that a checkpoint names, with every byte verified. A damaged one is built again.

        Raises:
            InputError: It is missing or damaged and cannot be built again.
        """
        step = int(state["index_step"])
        if step:
            self._use(step, self._refresh.at(step, state["index"]))

    def _take(self, fresh: tuple[int, Artifact] | None) -> None:
        if fresh is not None and fresh[0] > self.step:
            self._use(*fresh)
            self._refresh.hold(self.step)

    def _use(self, step: int, index: Artifact) -> None:
        encoder = None
        if self.encoder is not None:
            encoder = Retriever.load(self._refresh.snapshot(step).path).to(self._device)
        self.index = self._open(index.path, self._device)
        self.step, self._content, self.encoder = step, index.content, encoder

    def _wait(self, step: int, retriever: Retriever) -> float:
        if not self._refresh.too_old(step, self.step):
            return 0.0
        start = time.monotonic()
        say(f"pretrain: step {step}: the index is {step - self.step} steps old, waiting for a fresher one")
        while self._refresh.too_old(step, self.step):
            if asked_to_stop():
                raise StopRequested
            time.sleep(WAIT_SECONDS)
            self._refresh.offer(step, retriever)
            self._take(self._refresh.newest())
        return time.monotonic() - start
