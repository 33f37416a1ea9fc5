"""The index that pre-training searches. It ages, and between two steps a fresher one takes its place.

With several processes the first one decides, and all of them swap at the same step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NotRequired, TypedDict

from realmctl.artifacts import Artifact, Writer, open_artifact, verify
from realmctl.artifacts.disk import write_file
from realmctl.errors import InputError
from realmctl.execution import processes
from realmctl.execution.signals import StopRequested, asked_to_stop
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index
from realmctl.log import say, warn
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.training import data_parallel
from realmctl.training.index_shards import open_own_shard
from realmctl.training.objective import Observer
from realmctl.training.refresh.index_maker import IndexMaker, request_of, retriever_origin, write_retriever
from realmctl.training.refresh.kinds import Refresh, refresh_of
from realmctl.training.settings.pretrain import RefreshSettings

WAIT_SECONDS = 0.05


@contextmanager
def refreshed_index(
    settings: RefreshSettings, out: Writer, search_with_snapshots: bool = False
) -> Iterator[IndexInUse]:
    """Within the block the index of a training run is in use, and it is refreshed as the settings say.

    Args:
        settings: The settings of the run.
        out: The artifact being written. It receives `journal.jsonl`.
        search_with_snapshots: Embed queries with the retriever of the index in use, not with the one being trained.

    Raises:
        RealmctlError: The refresher failed again and again, or the index is too old and the run is to fail then.
    """
    warns = settings.refresh != "never" and processes.is_first()
    if warns and settings.refresh_every >= settings.steps:
        warn(
            f"--refresh-every {settings.refresh_every}, --steps {settings.steps}: the index is not refreshed while training. Use a "
            "smaller --refresh-every, or --refresh never to say that this is meant."
        )
    refresh = refresh_of(settings, out, search_with_snapshots)
    try:
        in_use = IndexInUse(
            settings.index,
            str(pick_device(settings.device)),
            refresh,
            searcher=settings.retriever if search_with_snapshots else None,
            opener=open_own_shard if settings.index_shards else open_index,
            journal=out.file("journal.jsonl") if refresh and processes.is_first() else None,
        )
        yield in_use
    finally:
        if refresh:
            refresh.close()
    if warns and not in_use.swaps and settings.refresh_every < settings.steps:
        warn(
            f"pretrain: no refreshed index was used, though --refresh {settings.refresh} asks for one: none was ready before the "
            f"last of {settings.steps} steps. Use a smaller --refresh-every, more --steps, or --refresh inline, which waits."
        )


def publish_retriever_and_index(settings: RefreshSettings, out: Writer, retriever: Retriever, step: int) -> Artifact:
    """Write the retriever of a step and its index, which is the last refresh. For the first process, after the training.

    Returns:
        The index.
    """
    maker = IndexMaker(request_of(settings), settings.device)
    origin = retriever_origin(settings, out)
    last = write_retriever(out.path / "retriever", origin, retriever.cpu(), maker.blocks, step)
    return maker.make(last, out.path / "index")


class Swap(TypedDict):
    """From `step` on, training searched the index of the snapshot of step `index_step`, whose content hash is `index`."""

    step: int
    index_step: int
    index: str


class IndexState(TypedDict):
    """What a checkpoint records: the index that the next step starts with, the swaps so far, and the snapshot (step, content
    hash) whose index is still to come and must be this one."""

    index_step: int
    index: str
    swaps: list[Swap]
    awaited: NotRequired[tuple[int, str]]


class IndexInUse:
    """The index in use, `index`, which was made with the snapshot of step `step` (0: the index that training began with).

    Args:
        first: The index that training begins with.
        device: Device of the search.
        refresh: What makes fresher indexes. None: `first` stays in use.
        searcher: The retriever that `first` was made with, if queries are embedded with the retriever of the index.
            `encoder` is then the retriever of the index in use; otherwise it is None.
        opener: Opens the index in a folder on a device.
        journal: The file `journal.jsonl`, which has a line for each swap; None to write none.
    """

    def __init__(
        self,
        first: Artifact,
        device: str,
        refresh: Refresh | None = None,
        *,
        searcher: Artifact | None = None,
        opener: Callable[[Path, str], Index] = open_index,
        journal: Path | None = None,
    ) -> None:
        self.index: Index = opener(first.path, device)
        self.encoder = Retriever.load(searcher.path).to(device) if searcher else None
        self.step, self._content = 0, first.content
        self.swaps: list[Swap] = []
        self._refresh, self._device, self._open, self._journal = refresh, device, opener, journal
        self._begun = False

    def renew(self, step: int, retriever: Retriever) -> dict[str, float]:
        """Offer a snapshot, switch to a fresher index if there is one, and wait for it if the index is too old.

        All processes must call this at the same time.

        Args:
            step: Number of training steps taken so far.
            retriever: The retriever being trained.

        Returns:
            `index_age_steps`, and `index_wait_seconds` if it waited.

        Raises:
            StopRequested: A process was asked to stop during the wait. All of them stop then, at the same step.
            ResourceError: The index is too old, and the run is to fail then.
        """
        refresh = self._refresh
        if refresh is None:
            return {"index_age_steps": step - self.step}
        if not self._begun:
            refresh.begin(step, self.step)
            self._write_journal()
            self._begun = True
        before, waits_since = self.step, None
        while True:
            refresh.offer(step, self.step, retriever)
            self._swap(refresh, step)
            if not self._must_wait(refresh, step):
                break
            if waits_since is None:
                waits_since = time.monotonic()
                say(f"pretrain: step {step}: the index is {step - self.step} steps old, waiting for a fresher one")
            time.sleep(WAIT_SECONDS)
        if self.step != before:
            refresh.offer(step, self.step, retriever)  # a snapshot may be due as soon as the index before it is in use
        logged: dict[str, float] = {"index_age_steps": step - self.step}
        if waits_since is not None and not refresh.reproducible:  # or else equal runs would write other metrics
            logged["index_wait_seconds"] = time.monotonic() - waits_since
        return logged

    @property
    def refreshes(self) -> int:
        """Number of refreshed indexes that a step used."""
        return len({swap["step"] for swap in self.swaps})

    def state(self) -> IndexState:
        """Return what a checkpoint records."""
        state = IndexState(index_step=self.step, index=self._content, swaps=[*self.swaps])
        if self._refresh and (awaited := self._refresh.awaited(self.step)):
            state["awaited"] = awaited
        return state

    def restore(self, state: IndexState) -> None:
        """Open the index that a checkpoint names, with every byte verified. A damaged one is built again.

        Raises:
            InputError: It is missing or damaged and cannot be built again, or a snapshot that the run needs is.
        """
        if self._refresh is None:
            return
        if "awaited" in state:
            step, content = state["awaited"]
            if self._refresh.snapshot(step).content != content:
                raise InputError(f"The snapshot of step {step} is not the one that the checkpoint names.")
        if state["index_step"]:
            self._use(state["index_step"], self._refresh.index(state["index_step"], state["index"]))
        self.swaps = [*state["swaps"]]

    def _swap(self, refresh: Refresh, step: int) -> None:
        """Switch to the index that the first process takes at this step, if it takes one."""
        taken = refresh.take(step, self.step)
        told = data_parallel.from_first([taken[0], str(taken[1].path), taken[1].content] if taken else None)
        if told is None:
            return
        index_step, path, content = told
        index = taken[1] if taken else _same(Path(path), content)
        data_parallel.anyone(False)  # nobody goes on before all have found it
        self.swaps.append(Swap(step=step, index_step=index_step, index=content))
        self._write_journal()
        self._use(index_step, index)

    def _must_wait(self, refresh: Refresh, step: int) -> bool:
        """Return whether the first process must wait. Raises StopRequested in all processes when one is asked to stop meanwhile."""
        answers = data_parallel.exchange([refresh.too_old(step, self.step), asked_to_stop()])
        too_old = bool(answers[0][0])
        if too_old and any(stop for _, stop in answers):
            raise StopRequested
        return too_old

    def _use(self, step: int, index: Artifact) -> None:
        encoder = self.encoder
        if self._refresh and encoder is not None:
            encoder = Retriever.load(self._refresh.snapshot(step).path).to(self._device)
        self.index = self._open(index.path, self._device)
        self.step, self._content, self.encoder = step, index.content, encoder

    def _write_journal(self) -> None:
        """Write the swaps durably, before the index of the last one is searched for the first time.

        Checkpoints keep the same lines in their sealed state. So a run that continues writes the file anew, and a damaged file has
        no effect.
        """
        if self._journal is None:
            return
        write_file(self._journal, "".join(json.dumps(swap) + "\n" for swap in self.swaps).encode())


class IndexRenewal(Observer):
    """Renews the index before each step (section 3.3): training goes on with a fresher one as soon as it is there."""

    name = "index"

    def __init__(self, in_use: IndexInUse, retriever: Retriever) -> None:
        self._in_use, self._retriever = in_use, retriever

    def before_step(self, step: int) -> dict[str, float]:
        """Return the age of the index, and the wait. Raises what `IndexInUse.renew` raises."""
        return self._in_use.renew(step, self._retriever)

    def state(self) -> IndexState:
        return self._in_use.state()

    def restore(self, state: IndexState) -> None:
        self._in_use.restore(state)


def _same(path: Path, content: str) -> Artifact:
    """Return the index that the first process uses, with every byte verified. For the other processes."""
    index = open_artifact(path)
    verify(index)
    if index.content != content:
        raise InputError(f"{processes.name()} sees another index in {path} than the first process does.")
    return index
