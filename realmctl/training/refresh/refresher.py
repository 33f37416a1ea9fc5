"""The refresher: a process that turns the newest snapshot into an index, again and again, until its trainer is gone.

`pretrain --refresh background` starts it. By hand, `realmctl refresh RUN/live` starts one on another GPU or on a host that
shares the folder. It takes the newest snapshot and skips older ones. An index becomes visible by one rename.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from realmctl.artifacts import open_artifact
from realmctl.errors import RealmctlError
from realmctl.execution.parent import die_with_parent
from realmctl.execution.shards import Executor
from realmctl.log import say
from realmctl.training.refresh.index_maker import IndexMaker
from realmctl.training.refresh.refresh_folder import HEARTBEAT, KEPT_INDEXES, RefreshFolder, at_step, prune, steps_in
from realmctl.training.refresh.refresher_process import TRAINER
from realmctl.training.scratch_files import write_json

POLL_SECONDS = 0.2
BEAT_SECONDS = 2.0
GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT)
"""Signals that reach the whole process group. A child refresher ignores them: its trainer decides when it ends."""


class Superseded(Exception):
    """The folder holds the request of a newer trainer, so this refresher must not deliver."""


class Heartbeat:
    """Writes `refresher.json` every two seconds from a thread: process id, token, count, state, step, blocks done.

    The states are starting, waiting, embedding, building (graph and recall) and failed. While building, which reports no
    blocks, `cpu_seconds` shows progress: a process that hangs uses no processor time.
    """

    def __init__(self, folder: RefreshFolder, token: str, blocks: int = 0) -> None:
        self._folder, self._token, self._blocks = folder, token, blocks
        self._count, self._lock = 0, threading.Lock()
        self.superseded = False
        self._values: dict[str, Any] = {
            "pid": os.getpid(),
            "token": token,
            "state": "starting",
            "step": 0,
            "blocks_done": 0,
            "cpu_seconds": 0,
            "error": None,
        }

    def set(self, **values: Any) -> None:
        """Change values and write the file now."""
        self._values.update(values)
        self.beat()

    def tick(self, blocks: int) -> None:
        """Count blocks that were embedded. After the last one the state is `building`.

        Raises:
            Superseded: A newer trainer has placed its request.
        """
        if self.superseded:
            raise Superseded
        self._values["blocks_done"] += blocks
        if self._values["blocks_done"] >= self._blocks:
            self._values["state"] = "building"

    def beat(self) -> None:
        """Write the file. Ends the process when the shared folder is gone, because the run is over then."""
        with self._lock:
            self.superseded = self.superseded or not self._folder.has_token(self._token)
            if self.superseded:
                return
            self._count += 1
            if self._values["state"] == "building":
                self._values["cpu_seconds"] = int(time.process_time())
            try:
                write_json(self._folder.path / HEARTBEAT, {**self._values, "count": self._count})
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


def serve(path: Path, device: str, executor: Executor = "local") -> None:
    """Refresh until the trainer is gone: end of file on a piped standard input, or the shared folder was removed.

    A child of a trainer also ends when a newer trainer has placed its request. A refresher that was started by hand serves
    the newer trainer. The executor embeds the blocks: this process, or the workers of a Ray cluster.

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
    folder = RefreshFolder(path)
    while True:
        try:
            _serve_request(folder, device, executor, child=bool(trainer))
            return
        except Superseded:
            if trainer:
                return
            say("refresh: the trainer was started again; this refresher serves its new run")


def _serve_request(folder: RefreshFolder, device: str, executor: Executor, child: bool) -> None:
    request = folder.request()
    maker = IndexMaker(request, device, executor)
    heart = Heartbeat(folder, request.token, len(maker.corpus))
    threading.Thread(target=heart.beat_forever, args=(child,), daemon=True).start()
    heart.set(state="waiting", step=max(steps_in(folder.indexes), default=0))
    while folder.path.is_dir():
        if not folder.has_token(request.token):
            raise Superseded
        if not _refresh_newest(folder, maker, heart):
            time.sleep(POLL_SECONDS)


def _refresh_newest(folder: RefreshFolder, maker: IndexMaker, heart: Heartbeat) -> bool:
    """Make the index of the newest snapshot. Returns False when there is none, or none without its index."""
    step = max(steps_in(folder.snapshots), default=0)
    return bool(step) and _refreshed(folder, maker, step, heart)


def _refreshed(folder: RefreshFolder, maker: IndexMaker, step: int, heart: Heartbeat) -> bool:
    """Make the index of a snapshot. Returns False when it has its index, or when the snapshot is gone or damaged."""
    path = at_step(folder.snapshots, step)
    try:
        if _has_its_index(folder, step):
            return False
        with _reported(heart, step):
            return _refresh(folder, maker, step, heart)
    except (RealmctlError, OSError):
        if not folder.has_token(maker.request.token):
            raise Superseded from None
        if path.is_dir():
            raise
        heart.set(state="waiting", error=None)
        return False


def _has_its_index(folder: RefreshFolder, step: int) -> bool:
    """Return whether the index of this step was made with the current snapshot of this step.

    The folder may hold an index of an earlier attempt at this step.
    """
    if step not in steps_in(folder.indexes):
        return False
    try:
        snapshot = open_artifact(at_step(folder.snapshots, step))
    except (RealmctlError, OSError):
        return False  # `_refresh` determines what is wrong with it
    try:
        index = open_artifact(at_step(folder.indexes, step))
    except (RealmctlError, OSError) as error:
        folder.set_aside(at_step(folder.indexes, step), str(error))
        return False
    return index.lineage.get("retriever") == snapshot.content


def _refresh(folder: RefreshFolder, maker: IndexMaker, step: int, heart: Heartbeat) -> bool:
    start = time.monotonic()
    snapshot = folder.whole(at_step(folder.snapshots, step))
    if snapshot is None:
        return False
    private = folder.private_name(step, maker.request.token)
    try:
        index = maker.make(snapshot, private, heart.tick)
        if not folder.has_token(maker.request.token):
            raise Superseded
        folder.deliver(private, step)
    finally:
        for unfinished in folder.indexes.glob(f"{private.name}*"):
            shutil.rmtree(unfinished, ignore_errors=True)
    prune(folder.indexes, KEPT_INDEXES, folder.held())
    say(f"refresh: index of step {step} in {time.monotonic() - start:.1f} s, recall {index.metrics.get('recall')}")
    return True


@contextmanager
def _reported(heart: Heartbeat, step: int) -> Iterator[None]:
    heart.set(state="embedding", step=step, blocks_done=0)
    try:
        yield
    except Exception as error:
        heart.set(state="failed", error=str(error))
        raise
    heart.set(state="waiting", step=step)


def _exit_at_end_of_input() -> None:
    """The trainer holds the other end of standard input. End of file means that the trainer is gone, even by SIGKILL."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)
