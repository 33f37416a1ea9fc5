"""Refresh beside the training: in a child process, or by a refresher that somebody started on another device or host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from realmctl.artifacts import Artifact, Origin, verify
from realmctl.errors import ConfigError, InputError, MismatchError, QualityError, RealmctlError, ResourceError
from realmctl.log import say, warn
from realmctl.nn.precision import pick_device
from realmctl.nn.retriever import Retriever
from realmctl.training.refresh.refresh import FolderRefresh
from realmctl.training.refresh.refresh_folder import HEARTBEAT, LOG, RefreshFolder
from realmctl.training.refresh.threads import DividedThreads

RESTARTS = 3
STALE_SECONDS = 120.0
STOP_SECONDS = 10.0
BACK_OFF = 2.0
LINES_OF_LOG = 8


class ExternalRefresh(FolderRefresh):
    """Somebody else started the refresher, with `realmctl refresh`: on another GPU, or a host that shares the folder."""

    def __init__(
        self,
        live: RefreshFolder,
        origin: Origin,
        tokenizer: Path,
        every: int,
        held: Callable[[], Sequence[int]],
        max_age: int,
    ) -> None:
        super().__init__(live, origin, tokenizer, every, held)
        self._max_age = max_age

    def begin(self, step: int) -> None:
        super().begin(step)
        self._start_refresher()

    def newest(self) -> tuple[int, Artifact] | None:
        """As ever, and every byte verified: it was written by another process, or came over a network."""
        found = super().newest()
        if found is not None:
            verify(found[1])
        return found

    def too_old(self, step: int, index_step: int) -> bool:
        return step - index_step > self._max_age

    def _start_refresher(self) -> None:
        say(f"pretrain: waiting for indexes from a refresher that you start: realmctl refresh {self.live.folder}")


class BackgroundRefresh(ExternalRefresh):
    """In a child process, started again when it dies or stands still. Raises its error after `RESTARTS` restarts.

    Where the child computes on the CPU, the two divide the threads that PyTorch would give this process, while it has work.
    """

    def __init__(
        self,
        live: RefreshFolder,
        origin: Origin,
        tokenizer: Path,
        every: int,
        held: Callable[[], Sequence[int]],
        max_age: int,
        device: str,
    ) -> None:
        super().__init__(live, origin, tokenizer, every, held, max_age)
        self._threads = DividedThreads() if pick_device(device).type == "cpu" else None
        self.process = RefresherProcess(live, device, self._threads.refresher if self._threads else None)

    def offer(self, step: int, retriever: Retriever) -> None:
        super().offer(step, retriever)
        self.process.watch()

    def newest(self) -> tuple[int, Artifact] | None:
        found = super().newest()
        if found is not None:
            self.process.failures = 0
        if self._threads:
            self._threads.lend(self.behind)
        return found

    def too_old(self, step: int, index_step: int) -> bool:
        late = super().too_old(step, index_step)
        if late:
            self.process.watch()
        return late

    def close(self) -> None:
        self.process.stop()
        if self._threads:
            self._threads.lend(False)

    def _start_refresher(self) -> None:
        self.process.watch()


class RefresherProcess:
    """The child. We hold the other end of its stdin, so it sees the end of it when we die, however we die.

    `threads` is how many PyTorch takes there; None leaves it as it is here.
    """

    def __init__(self, live: RefreshFolder, device: str, threads: int | None = None) -> None:
        self.live, self.device = live, device
        self._environment = os.environ | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
        self.child: subprocess.Popen[bytes] | None = None
        self.failures, self._not_before = 0, 0.0
        self._beat, self._beat_at = "", 0.0

    def watch(self) -> None:
        """Start it, or start it again when it died or stands still; give up when that does not help.

        Raises the kind of error that its exit code stands for (ResourceError for a kill), with the tail of its log.
        """
        if self.child is None:
            if time.monotonic() >= self._not_before:
                self._start()
        elif (code := self.child.poll()) is not None:
            self._failed(f"it ended with exit code {code}" if code >= 0 else f"it was killed by signal {-code}", code)
        elif self._stands_still():
            self._kill()
            self._failed(f"it gave no sign of life for {STALE_SECONDS:g} s", ResourceError.exit_code)

    def stop(self) -> None:
        """End of file on its stdin tells it to leave; then SIGTERM, then SIGKILL."""
        if self.child is None or self.child.stdin is None:
            return
        ways: tuple[Callable[[], None], ...] = (self.child.stdin.close, self.child.terminate, self.child.kill)
        for insist in ways:
            insist()
            try:
                self.child.wait(STOP_SECONDS)
                break
            except subprocess.TimeoutExpired:
                continue
        self.child = None
        say(f"index refresher stopped: {self._last_state()}")

    def _start(self) -> None:
        with (self.live.folder / LOG).open("ab") as log:
            self.child = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=log, stderr=log, env=self._environment
            )
        self._beat_at = time.monotonic()

    def _command(self) -> list[str]:
        return [sys.executable, "-P", "-m", "realmctl", "refresh", str(self.live.folder), "--device", self.device]

    def _kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()

    def _stands_still(self) -> bool:
        beat = self._read_heartbeat()
        if beat != self._beat:
            self._beat, self._beat_at = beat, time.monotonic()
        return time.monotonic() - self._beat_at > STALE_SECONDS

    def _failed(self, what: str, code: int) -> None:
        self.child, self.failures = None, self.failures + 1
        self._not_before = time.monotonic() + BACK_OFF**self.failures
        if self.failures <= RESTARTS:
            warn(f"the index refresher failed: {what}; starting it again ({self.failures} of {RESTARTS})")
            return
        log = self.live.folder / LOG
        tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LINES_OF_LOG:]
        kinds: dict[int, type[RealmctlError]] = {
            kind.exit_code: kind for kind in (ConfigError, InputError, MismatchError, QualityError)
        }
        raise kinds.get(code, ResourceError)(
            f"The index refresher failed {self.failures} times in a row ({what}), and training does not go on with a stale index. "
            f"Correct what it says and run the same command again. The last lines of {log}: {' | '.join(tail) or '(nothing)'}"
        )

    def _read_heartbeat(self) -> str:
        try:
            return (self.live.folder / HEARTBEAT).read_text(encoding="utf-8")
        except OSError:
            return ""

    def _last_state(self) -> str:
        try:
            state = json.loads(self._read_heartbeat())
            return f"{state['state']}, newest index of step {state['step']}"
        except (ValueError, KeyError, TypeError):
            return "it never said anything"
