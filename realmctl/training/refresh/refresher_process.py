"""The refresher as a child process of the trainer: started, watched, started again, ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

from realmctl.errors import ConfigError, InputError, MismatchError, QualityError, RealmctlError, ResourceError
from realmctl.execution.signals import asked_to_stop
from realmctl.log import say, warn
from realmctl.training.refresh.refresh_folder import LOG, RefreshFolder, read_heartbeat, writer_suffix

RESTARTS = 3
STALE_SECONDS = 120.0
"""A refresher that has work but makes no progress for this many seconds is started again."""
STOP_SECONDS = 2.0
BACK_OFF = 2.0
LINES_OF_LOG = 8
TRAINER = "REALMCTL_TRAINER"
"""Environment variable with the process id of the trainer, for a child refresher."""
PROGRESS = ("pid", "state", "step", "blocks_done", "cpu_seconds")
"""Values of a heartbeat that show progress.

Its count does not: a thread increases it even while the work makes no progress.
"""


class RefresherProcess:
    """The child process `child`, None when it does not run.

    The trainer holds the other end of its standard input, so the child sees end of file when the trainer dies.

    Args:
        folder: The shared folder, with the request in it.
        device: Device of the child.
        threads: Number of threads for PyTorch in the child; None leaves the environment as it is.
    """

    def __init__(self, folder: RefreshFolder, device: str, threads: int | None = None) -> None:
        self.folder, self.device, self._token = folder, device, folder.request().token
        self._environment = os.environ | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
        self.child: subprocess.Popen[bytes] | None = None
        self.failures, self._not_before = 0, 0.0
        self._progress: tuple[object, ...] | None = None
        self._progress_at = 0.0

    def watch(self, has_work: bool) -> None:
        """Start the child, or start it again when it has died or makes no progress.

        Args:
            has_work: Whether a snapshot waits for its index. An idle refresher need not make progress.

        Raises:
            RealmctlError: The child failed `RESTARTS` + 1 times in a row. The class of the error follows from its exit
                code (ResourceError for a kill); the message ends with the tail of its log.
        """
        if asked_to_stop():  # a signal to the whole process group may have ended the child
            return
        if self.child is None:
            if time.monotonic() >= self._not_before:
                self._start()
        elif (code := self.child.poll()) is not None:
            self._failed(f"it ended with exit code {code}" if code >= 0 else f"it was killed by signal {-code}", code)
        elif self._stands_still(has_work):
            self._kill()
            self._failed(f"it made no progress for {STALE_SECONDS:g} s", ResourceError.exit_code)

    def stop(self) -> None:
        """Ask the child to leave by end of file on its standard input; after two seconds, kill it.

        It has nothing to save, and a stopped process (SIGSTOP) obeys nothing but SIGKILL.
        """
        if self.child is None or self.child.stdin is None:
            return
        self.child.stdin.close()
        try:
            self.child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
        self.child = None
        say(f"index refresher stopped: {self._last_state()}")

    def _start(self) -> None:
        with (self.folder.path / LOG).open("ab") as log:
            self.child = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment | {TRAINER: str(os.getpid())},
            )
        self._progress_at = time.monotonic()

    def _command(self) -> list[str]:
        return [sys.executable, "-P", "-m", "realmctl", "refresh", str(self.folder.path), "--device", self.device]

    def _kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()

    def _stands_still(self, has_work: bool) -> bool:
        beat = read_heartbeat(self.folder)
        if beat.get("token") == self._token:
            progress = tuple(beat.get(name) for name in PROGRESS)
            if progress != self._progress:
                self._progress, self._progress_at = progress, time.monotonic()
        if not has_work:
            self._progress_at = time.monotonic()
        return time.monotonic() - self._progress_at > STALE_SECONDS

    def _failed(self, what: str, code: int) -> None:
        self._remove_unfinished()
        self.child, self.failures = None, self.failures + 1
        self._not_before = time.monotonic() + BACK_OFF**self.failures
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

    def _remove_unfinished(self) -> None:
        """Delete the unfinished indexes of the dead child."""
        if self.child is not None:
            for path in self.folder.indexes.glob(f"*{writer_suffix(self._token, self.child.pid)}*"):
                shutil.rmtree(path, ignore_errors=True)

    def _last_state(self) -> str:
        beat = read_heartbeat(self.folder)
        if "state" not in beat or "step" not in beat:
            return "it never sent a heartbeat"
        return f"{beat['state']}, newest index of step {beat['step']}"
