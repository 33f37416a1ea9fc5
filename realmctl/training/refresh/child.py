"""The refresher as a child process of the trainer: started, watched, started again, ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import torch

from realmctl.errors import (
    ConfigError,
    InputError,
    MismatchError,
    NotFiniteError,
    QualityError,
    RealmctlError,
    ResourceError,
    one_line,
)
from realmctl.execution.signals import asked_to_stop
from realmctl.log import say, warn
from realmctl.models.precision import pick_device
from realmctl.training.refresh.protocol import LOG, RefreshFolder

RESTARTS = 3
STALE_SECONDS = 120.0
"""A refresher that has work but makes no progress for this many seconds is started again."""
LONGEST_LOOK = STALE_SECONDS / 2
"""Of the seconds between two looks at most so many count. In a longer time the trainer had a long step, or was stopped too."""
STOP_SECONDS = 2.0
BACK_OFF = 2.0
LINES_OF_LOG = 8
TRAINER = "REALMCTL_TRAINER"
"""Environment variable with the process id of the trainer, for a child refresher."""
PROGRESS = ("pid", "state", "step", "blocks_done", "cpu_seconds")
"""Values of a heartbeat that show progress.

Its count does not: a thread increases it even while the work makes no progress.
"""


class ChildRefresher:
    """The refresher that the trainer starts: `process`, None when it does not run. `failures` counts those in a row.

    The trainer holds the other end of its standard input, so the child sees end of file when the trainer dies.

    Where the child computes on the CPU, PyTorch's threads in this process are divided between trainer and child while the child
    has work. More threads than cores wait for each other in busy loops, many times slower.

    Args:
        folder: The shared folder, with the request in it.
        device: Device of the child.
        always_divided: Divide the threads from the first `watch` to `stop`, because their number can change the last bits of a sum.
    """

    def __init__(self, folder: RefreshFolder, device: str, always_divided: bool = False) -> None:
        self.folder, self.device, self._token = folder, device, folder.request().token
        self._threads, self._always_divided = torch.get_num_threads(), always_divided
        self._lent = max(1, self._threads // 2) if pick_device(device).type == "cpu" else 0
        self.process: subprocess.Popen[bytes] | None = None
        self.failures, self._not_before = 0, 0.0
        self._progress: tuple[object, ...] | None = None
        self._looked_at = self._still_seconds = 0.0

    def watch(self, has_work: bool) -> None:
        """Start the child, or start it again when it has died or makes no progress.

        Args:
            has_work: Whether a snapshot waits for its index. An idle refresher need not make progress.

        Raises:
            NotFiniteError: Vectors of the snapshot are not finite.
            RealmctlError: The child failed `RESTARTS` + 1 times in a row. The class of the error follows from its exit
                code (ResourceError for a kill); the message ends with the tail of its log.
        """
        self._divide_threads(has_work or self._always_divided)
        if asked_to_stop():  # a signal to the whole process group may have ended the child
            return
        if self.process is None:
            if time.monotonic() >= self._not_before:
                try:
                    self._start()
                except OSError as error:
                    self._failed(f"it cannot be started: {one_line(error)}", ResourceError.exit_code)
        elif (code := self.process.poll()) is not None:
            self._failed(f"it ended with exit code {code}" if code >= 0 else f"it was killed by signal {-code}", code)
        elif self._stands_still(has_work):
            self._kill(self.process)
            self._failed(f"it made no progress for {STALE_SECONDS:g} s", ResourceError.exit_code)

    def stop(self) -> None:
        """Ask the child to leave by end of file on its standard input; after two seconds, kill it.

        It has nothing to save, and a stopped process (SIGSTOP) obeys nothing but SIGKILL.
        """
        self._divide_threads(False)
        if self.process is None or self.process.stdin is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill(self.process)
        self.process = None
        beat = self.folder.last_beat()
        last = (
            f"{beat['state']}, newest index of step {beat['step']}" if "step" in beat else "it never sent a heartbeat"
        )
        say(f"index refresher stopped: {last}")

    def command(self) -> list[str]:
        """Return the command of the child."""
        return [sys.executable, "-P", "-m", "realmctl", "refresh", str(self.folder.path), "--device", self.device]

    def _start(self) -> None:
        threads = {"OMP_NUM_THREADS": str(self._lent)} if self._lent else {}
        with (self.folder.path / LOG).open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ | threads | {TRAINER: str(os.getpid())},
            )
        self._looked_at, self._still_seconds = time.monotonic(), 0.0

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    def _stands_still(self, has_work: bool) -> bool:
        beat, now, before = self.folder.last_beat(), time.monotonic(), self._progress
        if beat.get("token") == self._token:
            self._progress = tuple(beat.get(name) for name in PROGRESS)
        if not has_work or self._progress != before:
            self._still_seconds = 0.0
        else:
            self._still_seconds += min(now - self._looked_at, LONGEST_LOOK)
        self._looked_at = now
        return self._still_seconds >= STALE_SECONDS

    def _failed(self, what: str, code: int) -> None:
        """Count a failure, and plan the next start. After the last one raise an error with the end of the log."""
        if self.process is not None:
            self.folder.remove_unfinished(self._token, self.process.pid)
        self.process, self.failures = None, self.failures + 1
        self._not_before = time.monotonic() + BACK_OFF**self.failures
        beat = self.folder.last_beat()
        if beat.get("token") == self._token and beat.get("state") == "diverged":  # it would be so again
            error = NotFiniteError(f"the index refresher finds: {beat.get('error')}")
            error.step = beat.get("step")
            raise error
        if self.failures <= RESTARTS:
            warn(f"the index refresher failed: {what}; starting it again ({self.failures} of {RESTARTS})")
            return
        log = self.folder.path / LOG
        tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LINES_OF_LOG:]
        kinds: dict[int, type[RealmctlError]] = {
            kind.exit_code: kind for kind in (ConfigError, InputError, MismatchError, QualityError)
        }
        raise kinds.get(code, ResourceError)(
            f"The index refresher failed {self.failures} times in a row ({what}), and training does not continue with a stale "
            "index. Correct what it says and run the same command again. "
            f"The last lines of {log}: {' | '.join(tail) or '(nothing)'}"
        )

    def _divide_threads(self, lend: bool) -> None:
        """Compute with the threads that are not lent to the child, at least one, or with all of them."""
        threads = max(1, self._threads - self._lent) if lend else self._threads
        if self._lent and threads != torch.get_num_threads():
            torch.set_num_threads(threads)
