"""The refresher: a process that turns the newest snapshot into an index, again and again, until its trainer is gone.

Started by `pretrain --refresh background`, or by hand (`realmctl refresh RUN/live`) on another GPU or host that shares
the folder. It takes the newest snapshot and drops those it missed; what it writes becomes visible by one rename.
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

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.errors import InputError, RealmctlError
from realmctl.log import say
from realmctl.training.refresh.refresh_folder import (
    HEARTBEAT,
    KEPT_INDEXES,
    IndexMaker,
    RefreshFolder,
    at_step,
    prune,
    steps_in,
    write_json,
)

POLL_SECONDS = 0.2
BEAT_SECONDS = 2.0


class Heartbeat:
    """`refresher.json`, replaced every two seconds by a thread: pid, a count that rises, state, step, blocks done."""

    def __init__(self, live: RefreshFolder) -> None:
        self._path, self._count, self._lock = live.folder / HEARTBEAT, 0, threading.Lock()
        self._values: dict[str, Any] = {
            "pid": os.getpid(),
            "state": "starting",
            "step": 0,
            "blocks_done": 0,
            "error": None,
        }

    def set(self, **values: Any) -> None:
        """Change what the next beat says, and beat now."""
        self._values.update(values)
        self.beat()

    def tick(self, blocks: int) -> None:
        """So many blocks more are embedded."""
        self._values["blocks_done"] += blocks

    def beat(self) -> None:
        """Write the file. Leaves the process when it cannot: the live folder is gone, and with it the run."""
        with self._lock:
            self._count += 1
            try:
                write_json(self._path, {**self._values, "count": self._count})
            except OSError:
                os._exit(0)

    def beat_forever(self) -> None:
        """For a thread of its own."""
        while True:
            time.sleep(BEAT_SECONDS)
            self.beat()


def serve(folder: Path, device: str) -> None:
    """Refresh until the trainer is gone: end of file on a piped stdin, or no live folder any more.

    Raises InputError when `folder` is not the live folder of a run, QualityError when an index misses its recall.
    """
    live = RefreshFolder(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the trainer decides
    threading.Thread(target=_leave_with_trainer, daemon=True).start()
    maker = IndexMaker(live.order(), device)
    for unfinished in live.indexes.glob("*.partial"):
        shutil.rmtree(unfinished, ignore_errors=True)
    heart = Heartbeat(live)
    threading.Thread(target=heart.beat_forever, daemon=True).start()
    heart.set(state="waiting", step=max(steps_in(live.indexes), default=0))
    while live.folder.is_dir():
        step = max(steps_in(live.snapshots), default=0)
        if not step or not _refreshed(live, maker, step, heart):
            time.sleep(POLL_SECONDS)


def _refreshed(live: RefreshFolder, maker: IndexMaker, step: int, heart: Heartbeat) -> bool:
    """Make the index of a snapshot; False where there is nothing to do, or the snapshot went away meanwhile."""
    path = at_step(live.snapshots, step)
    try:
        snapshot = open_artifact(path)
        if _has_its_index(live, step, snapshot):
            return False
        with _reporting(heart, step):
            _refresh(live, maker, step, snapshot, heart)
    except (RealmctlError, OSError):
        if path.is_dir():
            raise
        heart.set(state="waiting", error=None)
        return False
    return True


def _has_its_index(live: RefreshFolder, step: int, snapshot: Artifact) -> bool:
    """Whether the index of this step is of this snapshot, and not of one that an interrupted run took at this step."""
    try:
        return open_artifact(at_step(live.indexes, step)).lineage.get("retriever") == snapshot.content
    except (InputError, OSError):
        return False


def _refresh(live: RefreshFolder, maker: IndexMaker, step: int, snapshot: Artifact, heart: Heartbeat) -> None:
    start = time.monotonic()
    verify(snapshot)
    index = maker.make(snapshot, at_step(live.indexes, step), heart.tick)
    prune(live.indexes, KEPT_INDEXES, live.held())
    say(f"refresh: index of step {step} in {time.monotonic() - start:.1f} s, recall {index.metrics.get('recall')}")


@contextmanager
def _reporting(heart: Heartbeat, step: int) -> Iterator[None]:
    heart.set(state="refreshing", step=step, blocks_done=0)
    try:
        yield
    except Exception as error:
        heart.set(state="failed", error=str(error))
        raise
    heart.set(state="waiting", step=step)


def _leave_with_trainer() -> None:
    """The trainer holds the other end of our stdin: end of file means that it is gone, even by SIGKILL."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)
