"""Stages in child processes, several at a time: what `realmctl run --jobs` starts.

A child makes one stage after another, for it takes seconds to import PyTorch and transformers. The parent writes an order, one
line of JSON, to its stdin; the child answers with one line of JSON, and after a failure it ends. End of file means that the
parent is gone, even by SIGKILL, or done; the child then leaves as on SIGTERM. It is a process group of its own, so that
Ctrl-C reaches the parent alone, and each child is asked once.
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
from queue import SimpleQueue
from typing import Any

from realmctl import log
from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import InterruptedRun, RealmctlError, ResourceError, error_of, explained
from realmctl.execution.shards import worker_count
from realmctl.execution.signals import install_stop_now
from realmctl.stage import Stage

STOP_SECONDS = 10.0
"""How long a child that was asked twice, or has nothing to do, may take to leave before it is killed."""


class Child:
    """A process that makes one stage after another. `name` is the present one's: it heads its lines on stderr and its error.

    It computes with so many `threads`, unless OMP_NUM_THREADS says otherwise.
    """

    def __init__(self, threads: int) -> None:
        self.name = ""
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
        command = [sys.executable, "-P", "-m", "realmctl.pipeline.jobs"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, process_group=0, env=environment)
        assert self._process.stdin and self._process.stdout
        self._orders, self._answers = self._process.stdin, self._process.stdout

    def begin(self, name: str, stage: Stage, out: Path) -> None:
        """Make `stage` at `out`."""
        self.name = name
        with suppress(BrokenPipeError):  # it has died; `result` says so
            self._orders.write(_order(name, stage, out).encode() + b"\n")

    def fileno(self) -> int:
        """Readable once the child has answered or ended."""
        return self._answers.fileno()

    def result(self) -> Artifact:
        """What it made, once it has answered. Raises what stopped it, with its name and exit code; then it has ended."""
        answer = self._answers.readline()
        if not answer.endswith(b"\n"):
            self.dismiss()
            raise self._died(self._process.returncode)
        report = json.loads(answer)
        if "error" in report:
            self.dismiss()
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
        self._process.terminate()

    def wait(self, seconds: float | None) -> None:
        """Until it has ended. Raises subprocess.TimeoutExpired."""
        self._process.wait(seconds)

    def kill(self) -> None:
        """End it and whatever it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def dismiss(self) -> None:
        """Let it leave: there is no other order. Returns when it has."""
        self._orders.close()
        try:
            self.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._answers.close()


class Jobs:
    """At most `most` children at work at once, which divide the cores. Leaving the block with some of them at work stops those."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._threads = max(1, worker_count(0) // most)
        self.running: list[Child] = []
        self._resting: list[Child] = []

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *error: object) -> None:
        if self.running:
            self._stop()
        while self._resting:
            self._resting.pop().dismiss()

    @property
    def full(self) -> bool:
        return len(self.running) >= self.most

    def start(self, name: str, stage: Stage, out: Path) -> None:
        """Make `stage` at `out` in a child."""
        child = self._resting.pop() if self._resting else Child(self._threads)
        self.running.append(child)
        child.begin(name, stage, out)

    def next_made(self) -> tuple[str, Artifact]:
        """Wait for a child to answer; of several the one that was started first. Its stage's name, and what it made.

        Raises what stopped it.
        """
        ready = connection.wait([child.fileno() for child in self.running])
        child = next(child for child in self.running if child.fileno() in ready)
        self.running.remove(child)
        made = child.result()
        self._resting.append(child)
        return child.name, made

    def _stop(self) -> None:
        """Ask all to save and leave, and wait. A signal meanwhile asks again, and then they have little time."""
        for patience in (None, STOP_SECONDS):
            for child in self.running:
                child.ask_to_stop()
            with suppress(KeyboardInterrupt, InterruptedRun, subprocess.TimeoutExpired):
                for child in self.running:
                    child.wait(patience)
                return
        for child in self.running:
            child.kill()


def _order(name: str, stage: Stage, out: Path) -> str:
    fields = {field: getattr(stage, field) for field in stage.__dataclass_fields__}  # type: ignore[attr-defined]
    kind = type(stage)
    order = {"name": name, "stage": [kind.__module__, kind.__name__], "fields": fields, "out": out}
    return json.dumps({**order, "quiet": log.is_quiet()}, default=_spelled)


def _spelled(value: Any) -> str:
    return str(value.path if isinstance(value, Artifact) else value)


def _main() -> int:
    """The child: order after order, until one fails or none is left."""
    install_stop_now()
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    orders: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_take_orders, args=(orders,), daemon=True).start()
    with suppress(InterruptedRun, KeyboardInterrupt, BrokenPipeError):  # asked to leave meanwhile, or nobody listens
        while True:
            report = _report(json.loads(orders.get()))
            os.write(answer, json.dumps(report).encode() + b"\n")
            if "error" in report:
                return int(report["exit_code"])
    return 0


def _take_orders(orders: SimpleQueue[bytes]) -> None:
    """Until the parent is gone, or done."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # a buffer's lock, held here, would break the exit
        for line in stdin:
            orders.put(line)
    os.kill(os.getpid(), signal.SIGTERM)


def _report(order: dict[str, Any]) -> dict[str, Any]:
    log.set_quiet(order["quiet"])
    log.set_label(order["name"])
    try:
        return _made(order)
    except KeyboardInterrupt:
        return _failure(InterruptedRun("interrupted. Run the same command again; resumable stages go on."))
    except Exception as error:
        known = explained(error)
        if known is None:
            raise
        return _failure(known)


def _made(order: dict[str, Any]) -> dict[str, Any]:
    module, name = order["stage"]
    stage = getattr(importlib.import_module(module), name)
    return {"path": str(stage(**order["fields"]).make(order["out"]).path)}


def _failure(error: RealmctlError) -> dict[str, Any]:
    return {"error": " ".join(str(error).splitlines()), "exit_code": error.exit_code}


if __name__ == "__main__":
    sys.exit(_main())
