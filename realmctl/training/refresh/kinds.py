"""The kinds of refresh: when a snapshot is taken, who builds its index, and at which step the index goes into use.

    inline       the trainer builds the index at the step of the snapshot, and uses it from this step on
    background   another process builds it while training continues; it is used as soon as it is there
    lockstep     another process builds it; it is used one refresh period after its snapshot, never earlier and never later

In all of them a step is the number of training steps taken so far, and `in_use` is the step of the snapshot that the index in use
was made with; 0 is the index that training began with.
"""

from __future__ import annotations

from typing import ClassVar

from realmctl.artifacts import Artifact, Writer
from realmctl.errors import InputError
from realmctl.execution import processes
from realmctl.log import say, warn
from realmctl.models.retriever import Retriever
from realmctl.training.checkpoint import saved_states
from realmctl.training.names import NEVER, REFRESHES
from realmctl.training.refresh.child import ChildRefresher
from realmctl.training.refresh.index_maker import IndexMaker, request_of, retriever_origin, write_retriever
from realmctl.training.refresh.protocol import RefreshFolder
from realmctl.training.settings.pretrain import RefreshSettings


def refresh_of(settings: RefreshSettings, out: Writer, search_with_snapshots: bool = False) -> Refresh | None:
    """Return the refresh of this process, None when the index is never refreshed.

    Args:
        settings: The settings of the run.
        out: The artifact being written. The shared folder and the checkpoints are in its scratch folders.
        search_with_snapshots: Queries are embedded with the snapshot of the index in use, so an index is of no use without it.
    """
    if settings.refresh == NEVER:
        return None
    kind = REFRESHES.load(settings.refresh, LeadingRefresh)
    return kind(settings, out, search_with_snapshots) if processes.is_first() else Refresh(out)


class Refresh:
    """What the index in use asks for. This class itself is the refresh of a process that follows the first one.

    It decides nothing, and opens what a checkpoint names.
    """

    reproducible = True
    """Whether the steps at which indexes go into use depend on no timing."""

    def __init__(self, out: Writer) -> None:
        self.folder = RefreshFolder(out.scratch("live").resolve())

    def begin(self, step: int, in_use: int) -> None:
        """Start, once before the first step of this process. Training starts or continues after `step` steps."""

    def offer(self, step: int, in_use: int, retriever: Retriever) -> None:
        """Take a snapshot of the retriever if one is due. May be called again for the same step."""

    def take(self, step: int, in_use: int) -> tuple[int, Artifact] | None:
        """Return the index that goes into use at this step, and the step of its snapshot; None if `in_use` stays.

        Every byte is verified.
        """
        return None

    def too_old(self, step: int, in_use: int) -> bool:
        """Return whether training must wait for a fresher index before it takes a step.

        Raises:
            ResourceError: The run is to fail instead.
        """
        return False

    def index(self, step: int, content: str) -> Artifact:
        """Return the index of exactly this step, which a checkpoint names, with every byte verified.

        Raises:
            InputError: It is gone or damaged and cannot be built again.
        """
        found = self.folder.indexes.whole(step)
        if found is None:
            raise self._unseen(f"the index of step {step}")
        return found

    def snapshot(self, step: int) -> Artifact:
        """Return the snapshot of this step, with every byte verified.

        Raises:
            InputError: It is gone or damaged.
        """
        found = self.folder.snapshots.whole(step)
        if found is None:
            raise self._unseen(f"the snapshot of step {step}")
        return found

    def awaited(self, in_use: int) -> tuple[int, str] | None:
        """Return step and content hash of the snapshot that a run continued from here must find; None if it needs none."""
        return None

    def close(self) -> None:
        """End the refresher if this process started it."""

    def _unseen(self, what: str) -> InputError:
        return InputError(
            f"{processes.name()} does not see {what} in {self.folder.path}, which the first process uses, or it is damaged. "
            "All processes must see the folder of the run."
        )


class LeadingRefresh(Refresh):
    """What the kinds have in common in the first process. It alone takes snapshots, and decides when an index goes into use.

    Its start places a new request in the shared folder. Another rule for when a snapshot is taken is a subclass of `BackgroundRefresh` or `InlineRefresh`
    with another `is_due`, by its entry point or room (`realmctl.refreshes`), and `pretrain --refresh NAME`.

    Attributes:
        taken: {step: content hash} of the snapshots of this run. An index counts only if it was made with one of them: a refresher
            that was started for an earlier run of this training may still deliver another.
        child: The refresher that this process started; None if it builds the indexes itself, or if the user starts one.
    """

    builds: ClassVar[bool] = False
    """Whether this process builds the indexes itself."""

    def __init__(self, settings: RefreshSettings, out: Writer, search_with_snapshots: bool = False) -> None:
        super().__init__(out)
        self.settings, self.search_with_snapshots = settings, search_with_snapshots
        self.origin, self.checkpoints = retriever_origin(settings, out), out.scratch("checkpoints")
        request = request_of(settings)
        self.folder.place(request)
        self.maker = IndexMaker(request, settings.device)  # builds an index in this process
        self.taken: dict[int, str] = {}
        self.child: ChildRefresher | None = None
        if not self.builds and settings.refresh_device != "elsewhere":
            self.child = ChildRefresher(self.folder, settings.refresh_device, self.reproducible)
        elif not self.builds:
            say(f"pretrain: waiting for indexes from a refresher that you start: realmctl refresh {self.folder.path}")

    def checkpointed(self) -> set[int]:
        """Return the steps whose indexes or snapshots the checkpoints need."""
        states = [state["index"] for state in saved_states(self.checkpoints)]
        return {step for state in states for step in (state["index_step"], *state.get("awaited", ())[:1])}

    def begin(self, step: int, in_use: int) -> None:
        """Remove snapshots and indexes of later steps, which will be made again, and verify the snapshots that stay."""
        for folder in (self.folder.snapshots, self.folder.indexes):
            for later in (at for at in folder.steps() if at > step):
                folder.remove(later)
        found = {at: self.folder.snapshots.whole(at) for at in self.folder.snapshots.steps()}
        self.taken = {at: snapshot.content for at, snapshot in found.items() if snapshot}
        self.folder.hold([in_use, *self.checkpointed()])
        self._watch(in_use)

    def offer(self, step: int, in_use: int, retriever: Retriever) -> None:
        if step > 0 and step not in self.taken and self._takes(step, in_use, retriever):
            path = self.folder.snapshots.at(step)
            self.taken[step] = write_retriever(path, self.origin, retriever, self.maker.blocks, step).content
            still_searched = [at for at in self.taken if at > in_use] if self.search_with_snapshots else []
            self.folder.snapshots.prune({in_use, *self.checkpointed(), *still_searched})
        self._watch(in_use)

    def take(self, step: int, in_use: int) -> tuple[int, Artifact] | None:
        """Return the newest index of this run."""
        for at in reversed([at for at in self.folder.indexes.steps() if at > in_use and at in self.taken]):
            index = self.folder.indexes.whole(at, self.taken[at])
            if index and not (self.search_with_snapshots and self.folder.snapshots.whole(at) is None):
                return self._put_into_use(at, index)
        return None

    def index(self, step: int, content: str) -> Artifact:
        index = self.folder.indexes.whole(step)
        if index is not None and index.content == content:
            return index
        snapshot = self.snapshot(step)
        if index is not None and index.lineage.get("retriever") == snapshot.content:
            return index  # built again after the checkpoint was written
        warn(f"the index of step {step} is built again from its snapshot")
        index = self.maker.make(snapshot, self.folder.indexes.at(step))
        if content and index.content != content:
            warn(
                f"the new index of step {step} is not equal to the lost one bit for bit; other hardware rounds differently"
            )
        return index

    def close(self) -> None:
        if self.child:
            self.child.stop()

    def _newest(self) -> int:
        return max(self.taken, default=0)

    def is_due(self, step: int, retriever: Retriever) -> bool:
        """Return whether a snapshot is taken after `step` steps, from 1. It may be asked again for the same step until one is taken."""
        return step % self.settings.refresh_every == 0

    def _takes(self, step: int, in_use: int, retriever: Retriever) -> bool:
        """Return whether a snapshot is taken now: it is due, and this kind can use it."""
        return self.is_due(step, retriever)

    def _is_pending(self, in_use: int) -> bool:
        """Return whether the newest snapshot waits for its index."""
        return self._newest() > in_use

    def _put_into_use(self, step: int, index: Artifact) -> tuple[int, Artifact]:
        self.folder.hold([step, *self.checkpointed()])
        if self.child:
            self.child.failures = 0
        return step, index

    def _watch(self, in_use: int) -> None:
        if self.child:
            self.child.watch(self._is_pending(in_use))

    def _unseen(self, what: str) -> InputError:
        return InputError(f"{self.folder.path}: {what} is gone or damaged.")


class InlineRefresh(LeadingRefresh):
    """The trainer builds each index itself, as soon as the snapshot is taken. This suits tests and small corpora."""

    builds = True

    def take(self, step: int, in_use: int) -> tuple[int, Artifact] | None:
        found = super().take(step, in_use)
        if found is None and self._is_pending(in_use):
            self.maker.make(self.snapshot(self._newest()), self.folder.indexes.at(self._newest()))
            self.folder.indexes.prune({in_use, *self.checkpointed()})
            found = super().take(step, in_use)
        return found


class BackgroundRefresh(LeadingRefresh):
    """Another process builds the indexes as fast as it can, while training continues."""

    reproducible = False

    def too_old(self, step: int, in_use: int) -> bool:
        return self._is_pending(in_use) and step - in_use > self.settings.max_age

    def _takes(self, step: int, in_use: int, retriever: Retriever) -> bool:
        """A snapshot is also taken when the refresher found the newest one damaged."""
        if self._is_pending(in_use) and not self.folder.snapshots.has(self._newest()):
            del self.taken[self._newest()]
            return True
        return super()._takes(step, in_use, retriever)


class LockstepRefresh(LeadingRefresh):
    """The snapshot of step s goes into use as an index at step s + `--refresh-every`, so no delay of a process changes the result.

    The trainer waits when the index is not ready. Until then it trains with the index before it, as in the background.

    A snapshot is taken only after the index of the one before it is in use. So the newest snapshot is the only one whose index
    may be missing, and a refresher that was started again makes the right one.
    """

    def due(self, step: int) -> int:
        """Return the step of the snapshot whose index is in use at `step`; 0 for the index that training began with."""
        return max(0, step // self.settings.refresh_every - 1) * self.settings.refresh_every

    def take(self, step: int, in_use: int) -> tuple[int, Artifact] | None:
        """Return the index that is due at this step, as soon as it is there.

        Raises:
            InputError: Its snapshot is damaged or gone.
        """
        due = self.due(step)
        if due <= in_use:
            return None
        if due not in self.taken or not self.folder.snapshots.has(due):
            raise InputError(
                f"The snapshot {self.folder.snapshots.at(due)} was damaged before its index was in use, and it cannot be taken "
                "again at this step. Run the same command again: training continues from a checkpoint before it."
            )
        index = self.folder.indexes.whole(due, self.taken[due])
        if index is None and due < self._newest():  # it was in use before, and the refresher makes the newest one alone
            index = self.index(due, "")
        return self._put_into_use(due, index) if index else None

    def too_old(self, step: int, in_use: int) -> bool:
        return in_use < self.due(step)

    def awaited(self, in_use: int) -> tuple[int, str] | None:
        newest = self._newest()
        return (newest, self.taken[newest]) if newest > in_use else None

    def _takes(self, step: int, in_use: int, retriever: Retriever) -> bool:
        return in_use >= self.due(step) and super()._takes(step, in_use, retriever)

    def _is_pending(self, in_use: int) -> bool:
        return super()._is_pending(in_use) and not self.folder.indexes.has(self._newest())
