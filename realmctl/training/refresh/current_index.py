"""The index that pre-training searches. It is replaced between steps; training waits for a fresher one when it is too old."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from realmctl.artifacts import Artifact
from realmctl.errors import ResourceError
from realmctl.execution.signals import StopRequested, asked_to_stop
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index
from realmctl.log import say, warn
from realmctl.models.retriever import Retriever
from realmctl.training.refresh.journal import Journal, Swap
from realmctl.training.refresh.refresh import Refresh

WAIT_SECONDS = 0.05
WhenStale = Literal["wait", "fail", "continue"]
"""What training does when the index is too old."""


class CurrentIndex:
    """The index in use, `index`, which was made with the snapshot of step `step` (0: the index that training began with).

    Args:
        first: The index that training begins with.
        refresh: The source of fresher indexes.
        device: Device of the search.
        retriever: The retriever that `first` was made with, if queries are embedded with the retriever of the index.
            `encoder` is then the retriever of the index in use; otherwise it is None.
        opener: Opens the index in a folder on a device.
        journal: Records every swap; by default without a file.
        when_stale: What to do when the index is too old: wait for a fresher one, fail, or continue with a warning.
    """

    def __init__(
        self,
        first: Artifact,
        refresh: Refresh,
        device: str,
        retriever: Artifact | None = None,
        *,
        opener: Callable[[Path, str], Index] = open_index,
        journal: Journal | None = None,
        when_stale: WhenStale = "wait",
    ) -> None:
        self._open, self._journal, self._when_stale = opener, journal or Journal(), when_stale
        self._warned_at = -1  # step of the index whose age was warned of
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
            ResourceError: The index is too old, and `when_stale` is fail.
        """
        if not self._begun:
            self._refresh.begin(step)
            self._refresh.hold(self.step)
            self._journal.begin()
            self._begun = True
        self._refresh.offer(step, retriever)
        self._take(step, self._refresh.newest())
        waited = self._wait(step, retriever)
        self._refresh.offer(step, retriever)  # a snapshot may be due as soon as the index before it is in use
        timed = waited and not self._refresh.reproducible  # or else equal runs would write other metrics
        return {"index_age_steps": step - self.step, **({"index_wait_seconds": waited} if timed else {})}

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint records: the index that the next step starts with, the swaps, the state of the refresh."""
        state = {"index_step": self.step, "index": self._content, "swaps": self._journal.state()}
        return {**state, "refresh": dict(self._refresh.state())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Open the index that a checkpoint names, with every byte verified. A damaged one is built again.

        Raises:
            InputError: It is missing or damaged and cannot be built again, or a snapshot that the run needs is.
        """
        step = int(state["index_step"])
        self._refresh.restore(state["refresh"])
        if step:
            self._use(step, self._refresh.at(step, state["index"]))
        self._journal.restore(state["swaps"])

    def _take(self, step: int, fresh: tuple[int, Artifact] | None) -> None:
        if fresh is not None and fresh[0] > self.step:
            self._journal.add(Swap(step, fresh[0], fresh[1].content))
            self._use(*fresh)
            self._refresh.hold(self.step)

    def _use(self, step: int, index: Artifact) -> None:
        encoder = None
        if self.encoder is not None:
            encoder = Retriever.load(self._refresh.snapshot(step).path).to(self._device)
        self.index = self._open(index.path, self._device)
        self.step, self._content, self.encoder = step, index.content, encoder

    def _wait(self, step: int, retriever: Retriever) -> float:
        if not self._refresh.too_old(step, self.step) or not self._must_wait(step):
            return 0.0
        start = time.monotonic()
        say(f"pretrain: step {step}: the index is {step - self.step} steps old, waiting for a fresher one")
        while self._refresh.too_old(step, self.step):
            if asked_to_stop():
                raise StopRequested
            time.sleep(WAIT_SECONDS)
            self._refresh.offer(step, retriever)
            self._take(step, self._refresh.newest())
        return time.monotonic() - start

    def _must_wait(self, step: int) -> bool:
        """Return whether to wait for a fresher index. Raises ResourceError when the run is to fail instead."""
        age = f"step {step}: the index is {step - self.step} steps old"
        if self._when_stale == "fail":
            raise ResourceError(
                f"pretrain: {age}, and --when-stale is fail. Find out why the refresher is late (live/refresher.log), or raise "
                "--max-index-age; the same command then continues."
            )
        if self._when_stale == "continue" and self._warned_at != self.step:
            self._warned_at = self.step
            warn(f"{age}; training continues with it (--when-stale continue)")
        return self._when_stale == "wait"


def steps_held(states: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the steps whose indexes and snapshots the checkpoints with these states need."""
    awaited = (state["refresh"].get("awaited") for state in states)
    return [*(state["index_step"] for state in states), *(step for step, _ in filter(None, awaited))]
