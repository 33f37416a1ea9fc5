"""A stage that meets others while it runs, and the real command with it, for tests of several stages at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from realmctl import cli
from realmctl.artifact import Artifact, Writer
from realmctl.errors import InputError
from realmctl.stage import Stage, reads, setting

ROOT = Path(__file__).resolve().parents[1]
DEADLINE_SECONDS = 60.0


class Act(Stage):
    """Leaves its process id in a folder, waits for others that do, and ends as it is told."""

    makes = "act"
    place: str = setting("The folder.")
    name: str = setting("Its name there.")
    waits_for: tuple[str, ...] = setting("Those that must have begun.", default=())
    outlives: tuple[str, ...] = setting("Those that must have ended.", default=())
    then: Literal["end", "fail", "break", "die", "hang"] = setting("How it ends.", default="end")
    after: Artifact | None = reads("act", help="What it needs.", named=True)
    also_after: Artifact | None = reads("act", help="What it needs, too.", named=True)

    def run(self, out: Writer) -> Mapping[str, Any]:
        begun, place = time.monotonic_ns(), Path(self.place)
        out.file("half.txt").write_text("half")
        sign_in(place, self.name)
        try:
            self._act(place)
        finally:
            Path(place, f"{self.name}.ended").touch()
        return {
            "begun": begun,
            "ended": time.monotonic_ns(),
            "process": os.getpid(),
            "threads": os.environ.get("OMP_NUM_THREADS"),
        }

    def _act(self, place: Path) -> None:
        wait_for(lambda: all((place / name).exists() for name in self.waits_for))
        wait_for(lambda: all((place / f"{name}.ended").exists() for name in self.outlives))
        if self.then == "fail":
            raise InputError(f"{self.name} fails as it was told")
        if self.then == "break":
            raise RuntimeError("a bug")
        if self.then == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.then == "hang":
            wait_for(lambda: False)


class Resumable(Act):
    """The same, with progress that outlives an interruption."""

    resumable = True

    def run(self, out: Writer) -> Mapping[str, Any]:
        progress = out.scratch("progress") / "half"
        if progress.exists():
            return {"resumed": 1}
        progress.write_text("half")
        return super().run(out)


STAGES: dict[str, type[Stage]] = {"act": Act, "resumable": Resumable}


def sign_in(place: Path, name: str) -> None:
    """This process, whole at once."""
    partial = place / f".{name}"
    partial.write_text(str(os.getpid()))
    partial.rename(place / name)


def alive(signed: Path) -> bool:
    """Whether the process that signed is still there."""
    return Path("/proc", signed.read_text()).exists()


def wait_for(condition: Callable[[], bool]) -> None:
    """Poll. Raises TimeoutError."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("nobody came")
        time.sleep(0.01)


def command(*arguments: object) -> subprocess.Popen[str]:
    """`realmctl` with these stages, as a process."""
    code = "import sys; from tests import fixtures_jobs; fixtures_jobs.main(sys.argv[1:])"
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=pipe, stderr=pipe, text=True, env=environment()
    )


def environment() -> dict[str, str]:
    """One in which a child process finds the tests' stages."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def main(arguments: list[str]) -> None:
    """What `command` runs."""
    cli.our_stages = lambda: STAGES  # type: ignore[assignment]
    cli.main(arguments)
