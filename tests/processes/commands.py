"""Commands in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from realmctl.artifacts import Artifact
from realmctl.pipeline import Stage, flag_of, roles

LONGEST_SECONDS = 600.0
POLL_SECONDS = 0.005
Found = TypeVar("Found")


def words_of(stage: Stage, out: Path) -> list[str]:
    """The command line that makes a stage in the series `out`, without the program. Every field is spelled out."""
    options, arguments = list[str](), list[str]()
    for name, role in roles(type(stage)).items():
        value, flag = getattr(stage, name), flag_of(name)
        if isinstance(value, bool):
            options.append(flag if value else f"--no-{flag.removeprefix('--')}")
            continue
        values = [] if value is None else list(value) if isinstance(value, tuple) else [value]
        texts = [str(item.path if isinstance(item, Artifact) else item) for item in values]
        if role.positional:
            arguments += texts
        else:
            options += [word for text in texts for word in (flag, text)]
    return [stage.command(), *arguments, *options, "--out", str(out), "--workspace", str(out / "none")]


def torchrun(processes: int, restarts: int = 0) -> list[str]:
    """The start of a command in several processes on this machine."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [*launcher, "--max-restarts", str(restarts), "-m", "realmctl"]


ALONE = [sys.executable, "-m", "realmctl"]


class RunningCommand:
    """A running command. Its messages go to a file. As a context manager it leaves no process behind.

    Args:
        words: The command line.
        log: File for its messages.
        environment: Variables that this process does not have.
    """

    def __init__(self, words: list[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        common = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        with log.open("wb") as messages:
            self.process = subprocess.Popen(
                words,
                env={**common, **(environment or {})},
                stdout=subprocess.DEVNULL,
                stderr=messages,
                process_group=0,
            )
        self._end = time.monotonic() + LONGEST_SECONDS

    def __enter__(self) -> RunningCommand:
        return self

    def __exit__(self, *error: object) -> None:
        if self.running:
            self.process.terminate()  # torchrun ends its processes
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def messages(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, find: Callable[[], Found | None]) -> Found | None:
        """Look again and again until something is found. None if the command has ended first."""
        while True:
            ended = not self.running
            if (found := find()) is not None:
                return None if ended else found
            if ended or time.monotonic() > self._end:
                return None
            time.sleep(POLL_SECONDS)

    def failure(self) -> str:
        """Wait for the end. Returns why it failed, and an empty text if it did not."""
        try:
            code = self.process.wait(max(0.0, self._end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return f"it did not end within {LONGEST_SECONDS:.0f} s"
        if code == 0:
            return ""
        errors = [line for line in self.messages.splitlines() if line.startswith("error: ")]
        return errors[0] if errors else f"exit code {code}: {(self.messages.splitlines() or [''])[-1]}"
