"""The refresher: a process that turns the newest snapshot into an index, again and again, until its trainer is gone.

Started by `pretrain --refresh background`, or by hand (`realmctl refresh RUN/live`) on another GPU or host that shares
the folder. It takes the newest snapshot and drops those it missed; what it writes becomes visible by one rename.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from realmctl.artifact import Artifact, open_artifact, verify
from realmctl.errors import InputError
from realmctl.log import say
from realmctl.train.live import KEPT_INDEXES, IndexMaker, Live, at_step, prune, steps_in, write_json

POLL_SECONDS = 0.2
BEAT_SECONDS = 2.0


class Heartbeat:
    """`refresher.json`, replaced every two seconds by a thread: pid, a count that rises, state, step, blocks done."""

    def __init__(self, live: Live) -> None:
        self.path, self.count = live.folder / "refresher.json", 0
        self.values: dict[str, Any] = {"pid": os.getpid(), "state": "starting", "step": 0, "blocks_done": 0, "error": None}

    def set(self, **values: Any) -> None:
        """Change what the next beat says, and beat now."""
        self.values.update(values)
        self.beat()

    def tick(self, blocks: int) -> None:
        """So many blocks more are embedded."""
        self.values["blocks_done"] += blocks

    def beat(self) -> None:
        self.count += 1
        try:
            write_json(self.path, {**self.values, "count": self.count})
        except OSError:
            os._exit(0)  # the live folder is gone, and with it the run

    def beat_forever(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            self.beat()


def serve(folder: Path, device: str) -> None:
    """Refresh until the trainer is gone: end of file on a piped stdin, or no live folder any more.

    Raises InputError when `folder` is not the live folder of a run, QualityError when an index misses its recall.
    """
    live = Live(folder)
    maker = IndexMaker(live.order(), device)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the trainer decides
    threading.Thread(target=_leave_with_trainer, daemon=True).start()
    heart = Heartbeat(live)
    threading.Thread(target=heart.beat_forever, daemon=True).start()
    heart.set(state="waiting", step=max(steps_in(live.indexes), default=0))
    while live.folder.is_dir():
        step = _wanted(live)
        if step is None:
            time.sleep(POLL_SECONDS)
            continue
        with _reporting(heart, step):
            _refresh(live, maker, step, heart)


def _wanted(live: Live) -> int | None:
    """The newest snapshot, unless it has its index."""
    newest = max(steps_in(live.snapshots), default=0)
    return newest if newest > max(steps_in(live.indexes), default=0) else None


def _refresh(live: Live, maker: IndexMaker, step: int, heart: Heartbeat) -> None:
    try:
        snapshot: Artifact = open_artifact(at_step(live.snapshots, step))
        verify(snapshot)
    except (InputError, OSError):
        if step in steps_in(live.snapshots):
            raise
        return  # pruned while we looked: there is a newer one
    start = time.monotonic()
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
