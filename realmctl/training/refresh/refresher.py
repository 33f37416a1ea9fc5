"""The refresher: a process that turns the newest snapshot into an index, again and again, until its trainer is gone.

`pretrain --refresh background` starts it. By hand, `realmctl refresh RUN/live` starts one on another GPU or on a host that
shares the folder.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Literal, Unpack

from realmctl.artifacts import open_artifact
from realmctl.errors import AccessError, NotFiniteError, RealmctlError, ResourceError
from realmctl.execution.shards import LOCAL
from realmctl.log import say
from realmctl.training.refresh.child import TRAINER
from realmctl.training.refresh.index_maker import IndexMaker
from realmctl.training.refresh.protocol import Beat, RefreshFolder

POLL_SECONDS = 0.2
BEAT_SECONDS = 2.0
GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT)
"""Signals that reach the whole process group. A child refresher ignores them: its trainer decides when it ends."""


class Superseded(Exception):
    """The folder holds the request of a newer trainer, so this refresher must not deliver."""


def serve(path: Path, device: str, executor: str = LOCAL) -> None:
    """Refresh until the shared folder is removed, because the run has ended.

    A child of a trainer also ends when its standard input does, because the trainer is gone, and when a newer trainer has placed its
    request. A refresher that was started by hand serves the newer trainer; its input may be a pipe that ends at once, as of `ssh -n`.
    The executor embeds the blocks: this process, or the workers of a Ray cluster.

    Raises:
        InputError: `path` is not the shared folder of a run.
        QualityError: The recall of an index is below its floor.
    """
    trainer = int(os.environ.get(TRAINER, "0"))
    if trainer:
        die_with_parent(trainer)
        for number in GROUP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        threading.Thread(target=_exit_at_end_of_input, daemon=True).start()
    while True:
        try:
            Refresher(RefreshFolder(path), device, executor).serve(child=bool(trainer))
            return
        except Superseded:
            if trainer:
                return
            say("refresh: the trainer was started again; this refresher serves its new run")


class Refresher:
    """Serves one request, which it reads when it is made."""

    def __init__(self, folder: RefreshFolder, device: str, executor: str = LOCAL) -> None:
        self.folder, self.request, self.process = folder, folder.request(), os.getpid()
        self.maker = IndexMaker(self.request, device, executor)
        self.heart = Heartbeat(folder, self.request.token, len(self.maker.corpus))

    def serve(self, child: bool) -> None:
        """Refresh until the shared folder is removed.

        Args:
            child: Whether a trainer started this process, so that it ends when it is superseded.

        Raises:
            Superseded: A newer trainer has placed its request.
        """
        threading.Thread(target=self.heart.beat_forever, args=(child,), daemon=True).start()
        self.heart.set(state="waiting", step=self.folder.indexes.newest())
        while self.folder.path.is_dir():
            self._require_own_request()
            if not self.refresh_newest():
                time.sleep(POLL_SECONDS)

    def refresh_newest(self) -> bool:
        """Make the index of the newest snapshot.

        Returns:
            False when there is no snapshot, when the newest has its index, or when it is gone or damaged.
        """
        step = self.folder.snapshots.newest()
        if not step or self._has_its_index(step):
            return False
        self.heart.set(state="embedding", step=step, blocks_done=0)
        try:
            made = self._refresh(step)
        except Superseded:
            raise
        except Exception as error:
            self._require_own_request()
            if self.folder.snapshots.at(step).is_dir():
                state: Literal["diverged", "failed"] = "diverged" if isinstance(error, NotFiniteError) else "failed"
                self.heart.set(state=state, error=str(error))
                raise
            made = False  # the snapshot was pruned meanwhile
        self.heart.set(state="waiting", step=step)
        return made

    def _has_its_index(self, step: int) -> bool:
        """Return whether the index of this step was made with the current snapshot of this step.

        The folder may hold an index of an earlier attempt at this step.
        """
        if not self.folder.indexes.has(step):
            return False
        try:
            snapshot = open_artifact(self.folder.snapshots.at(step))
        except (RealmctlError, OSError):
            return False  # `_refresh` determines what is wrong with it
        try:
            index = open_artifact(self.folder.indexes.at(step))
        except (ResourceError, AccessError):
            raise
        except (RealmctlError, OSError) as error:
            self.folder.indexes.set_aside(step, str(error))
            return False
        return index.lineage.get("retriever") == snapshot.content

    def _refresh(self, step: int) -> bool:
        start = time.monotonic()
        snapshot = self.folder.snapshots.whole(step)
        if snapshot is None:
            return False
        unfinished = self.folder.unfinished(step, self.request.token, self.process)
        try:
            index = self.maker.make(snapshot, unfinished, self.heart.tick)
            self._require_own_request()
            self.folder.deliver(unfinished, step)
        finally:
            self.folder.remove_unfinished(self.request.token, self.process)
        held = self.folder.held()
        if held is not None:  # or else it is not known what may be pruned
            self.folder.indexes.prune(held)
        say(f"refresh: index of step {step} in {time.monotonic() - start:.1f} s, recall {index.metrics.get('recall')}")
        return True

    def _require_own_request(self) -> None:
        if not self.folder.has_token(self.request.token):
            raise Superseded


class Heartbeat:
    """Writes `refresher.json` every two seconds from a thread.

    Embedding shows progress by the number of blocks. Building the index reports none; there it is processor time, of which a
    process that hangs uses none.
    """

    def __init__(self, folder: RefreshFolder, token: str, blocks: int = 0) -> None:
        self._folder, self._token, self._blocks = folder, token, blocks
        self._lock = threading.Lock()
        self.superseded = False
        self._beat = Beat(
            pid=os.getpid(), token=token, state="starting", step=0, blocks_done=0, cpu_seconds=0, error=None, count=0
        )

    def set(self, **values: Unpack[Beat]) -> None:
        """Change values and write the file now."""
        self._beat.update(values)
        self.beat()

    def tick(self, blocks: int) -> None:
        """Count blocks that were embedded. After the last one the state is `building`.

        Raises:
            Superseded: A newer trainer has placed its request.
        """
        if self.superseded:
            raise Superseded
        self._beat["blocks_done"] += blocks
        if self._beat["blocks_done"] >= self._blocks:
            self._beat["state"] = "building"

    def beat(self) -> None:
        """Write the file. Ends the process when the shared folder is gone, because the run is over then."""
        with self._lock:
            self.superseded = self.superseded or not self._folder.has_token(self._token)
            if self.superseded:
                return
            self._beat["count"] += 1
            if self._beat["state"] == "building":
                self._beat["cpu_seconds"] = int(time.process_time())
            try:
                self._folder.beat(self._beat)
            except OSError:  # a full disk is reported by the writer of the index
                if not self._folder.path.is_dir():
                    os._exit(0)

    def beat_forever(self, child: bool) -> None:
        """Beat until superseded; for a thread of its own. A child of a former trainer then exits at once."""
        while not self.superseded:
            time.sleep(BEAT_SECONDS)
            self.beat()
        if child:
            os._exit(0)


def _exit_at_end_of_input() -> None:
    """The trainer holds the other end of standard input. End of file means that the trainer is gone, even by SIGKILL."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends. Exit at once if it has ended already.

    Only Linux has this signal. Elsewhere the function only checks that the parent is still there.

    Args:
        parent: Process id of the parent, from the parent itself: it may be gone before this function is called.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the kernel was asked
        os._exit(0)
