"""Stages in child processes, several at a time: what `realmctl run --jobs` starts.

The parent writes one line of JSON, the order, to the child's stdin and holds it open: end of file means that the parent is
gone, even by SIGKILL, and the child then leaves as on SIGTERM. The child answers with one line of JSON. It is a process
group of its own, so that Ctrl-C reaches the parent alone, and each child is asked once.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing import connection
from pathlib import Path
from typing import Any

from realmctl import log
from realmctl.artifact import Artifact, open_artifact
from realmctl.errors import InterruptedRun, RealmctlError, ResourceError, error_of, explained
from realmctl.signals import stop_now
from realmctl.stage import Stage

STOP_SECONDS = 10.0
"""How long a child that was asked twice has to clean up before it is killed."""


class Job:
    """A child that makes `stage` at `out`. `name` heads its lines on stderr and its error."""

    def __init__(self, name: str, stage: Stage, out: Path) -> None:
        self.name = name
        command = [sys.executable, "-P", "-m", "realmctl.jobs"]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, process_group=0)
        assert self._child.stdin and self._child.stdout
        self._answer = self._child.stdout
        with suppress(BrokenPipeError):  # it died at once; `result` says so
            self._child.stdin.write(_order(name, stage, out).encode() + b"\n")

    def fileno(self) -> int:
        """Readable once the child has answered or ended."""
        return self._answer.fileno()

    def result(self) -> Artifact:
        """What it made, once it has ended. Raises what stopped it, with its name and exit code."""
        with self._child:
            answer = self._answer.read()
        if not answer:
            raise self._died(self._child.returncode)
        report = json.loads(answer)
        if "error" in report:
            raise error_of(report["exit_code"], f"{self.name}: {report['error']}")
        return open_artifact(report["path"])

    def _died(self, code: int) -> RealmctlError:
        if code < 0:
            return ResourceError(
                f"{self.name}: its process was killed by signal {-code}, most likely for want of memory. "
                "Use fewer --jobs, or free some memory."
            )
        return error_of(code, f"{self.name}: its process ended with exit code {code}; what it said stands above.")

    def ask_to_stop(self) -> None:
        """The first time: save and leave. The second: leave at once."""
        self._child.terminate()

    def wait(self, seconds: float | None) -> None:
        """Until it has ended. Raises subprocess.TimeoutExpired."""
        self._child.wait(seconds)

    def kill(self) -> None:
        """End it and whatever it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()


class Jobs:
    """At most `most` children at once. Leaving the block with some of them running stops those."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.running: list[Job] = []

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *error: object) -> None:
        if self.running:
            self._stop()

    @property
    def full(self) -> bool:
        return len(self.running) >= self.most

    def start(self, name: str, stage: Stage, out: Path) -> None:
        """Make `stage` at `out` in a child."""
        self.running.append(Job(name, stage, out))

    def next_ended(self) -> Job:
        """Wait for a running one to end; of several the one that was started first."""
        ended = connection.wait([job.fileno() for job in self.running])
        job = next(job for job in self.running if job.fileno() in ended)
        self.running.remove(job)
        return job

    def _stop(self) -> None:
        """Ask all to save and leave, and wait. A signal meanwhile asks again, and then they have little time."""
        for patience in (None, STOP_SECONDS):
            for job in self.running:
                job.ask_to_stop()
            with suppress(KeyboardInterrupt, InterruptedRun, subprocess.TimeoutExpired):
                for job in self.running:
                    job.wait(patience)
                return
        for job in self.running:
            job.kill()


def _order(name: str, stage: Stage, out: Path) -> str:
    fields = {field: getattr(stage, field) for field in stage.__dataclass_fields__}  # type: ignore[attr-defined]
    kind = type(stage)
    order = {"name": name, "stage": [kind.__module__, kind.__name__], "fields": fields, "out": out}
    return json.dumps({**order, "quiet": log.is_quiet()}, default=_spelled)


def _spelled(value: Any) -> str:
    return str(value.path if isinstance(value, Artifact) else value)


def _main() -> int:
    """The child."""
    signal.signal(signal.SIGTERM, stop_now)
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    try:
        order = json.loads(sys.stdin.buffer.readline())
        threading.Thread(target=_leave_with_parent, daemon=True).start()
        log.set_quiet(order["quiet"])
        log.set_label(order["name"])
        report = _made(order)
    except KeyboardInterrupt:
        report = _failure(InterruptedRun("interrupted. Run the same command again; resumable stages go on."))
    except Exception as error:
        known = explained(error)
        if known is None:
            raise
        report = _failure(known)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the work is over, and the parent may close our stdin
    with suppress(BrokenPipeError):  # the parent is gone
        os.write(answer, json.dumps(report).encode())
    return int(report.get("exit_code", 0))


def _made(order: dict[str, Any]) -> dict[str, Any]:
    module, name = order["stage"]
    stage = getattr(importlib.import_module(module), name)
    return {"path": str(stage(**order["fields"]).make(order["out"]).path)}


def _failure(error: RealmctlError) -> dict[str, Any]:
    return {"error": " ".join(str(error).splitlines()), "exit_code": error.exit_code}


def _leave_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(_main())
