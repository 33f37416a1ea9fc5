"""Run stages in child processes, for `realmctl run --jobs`.

A child runs one stage after another, because importing PyTorch and transformers takes seconds. The parent writes a request,
which is one line of JSON, to the child's stdin. The child answers with one line of JSON, and ends after a failure. End of file
means that the parent has finished or was killed. The child then stops as it does on SIGTERM.

A child is a process group of its own. So Ctrl-C reaches only the parent, which asks each child to stop.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Collection
from contextlib import suppress
from multiprocessing import connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from realmctl import log
from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import (
    InterruptedRun,
    RealmctlError,
    ResourceError,
    at_the_end,
    error_of,
    interruption,
)
from realmctl.execution import standard_streams
from realmctl.execution.cores import free_cores, given_threads, use_threads
from realmctl.execution.signals import install_stop_now, interruption_behind
from realmctl.pipeline import Stage, roles
from realmctl.pipeline.fields import flag_of

STOP_SECONDS = 10.0
"""Seconds that a child gets to end before it is killed, when it has no work or was asked to stop for the second time."""


class Child:
    """A child process that runs one stage after another.

    Attributes:
        name: Name of the current step. The lines on stderr begin with it, and so does an error.
        stage: Its stage.
    """

    def __init__(self) -> None:
        self.name = ""
        self.stage: type[Stage] = Stage
        command = [sys.executable, "-P", "-m", "realmctl.pipeline.jobs"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, process_group=0)
        assert self._process.stdin and self._process.stdout
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def begin(self, name: str, stage: Stage, out: Path, threads: int) -> None:
        """Send the request to make `stage` in the series `out` with this number of threads."""
        self.name, self.stage = name, type(stage)
        with suppress(BrokenPipeError):  # the child has died; `result` raises that
            self._requests.write(_request(name, stage, out, threads).encode() + b"\n")

    def fileno(self) -> int:
        """File descriptor that is readable when the child has answered or ended."""
        return self._answers.fileno()

    def result(self) -> Artifact:
        """Wait for the answer and return the artifact. Raises the child's error, with the name of the step."""
        answer = self._answers.readline()
        if not answer.endswith(b"\n"):
            self.dismiss()
            raise self._died(self._process.returncode)
        report = json.loads(answer)
        if "error" in report:
            self.dismiss()
            raise error_of(report["exit_code"], told_of(self.name, self.stage, report["error"]))
        return open_artifact(report["path"])

    def _died(self, code: int) -> RealmctlError:
        if code < 0:
            return ResourceError(
                f"{self.name}: its process was killed by signal {-code}, most likely because memory ran out. "
                "Use fewer --jobs, or free some memory."
            )
        return error_of(code, f"{self.name}: its process ended with exit code {code}. Its messages are above.")

    def ask_to_stop(self) -> None:
        """Ask the child to save and end. If it was asked before, it ends at once."""
        self._process.terminate()

    def wait(self, seconds: float | None) -> None:
        """Wait until the child has ended. Raises subprocess.TimeoutExpired."""
        self._process.wait(seconds)

    def kill(self) -> None:
        """Kill the child and the processes that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def dismiss(self) -> None:
        """Tell the child that there are no more requests, and wait until it has ended."""
        self._requests.close()
        try:
            self.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._answers.close()


class Jobs:
    """Up to `most` child processes that work at the same time and share the cores.

    This is a context manager. Leaving it stops the children that still work.
    """

    def __init__(self, most: int) -> None:
        self.most, self._cores = most, free_cores()  # before its own stages make the machine busy
        self.running: list[Child] = []
        self._idle: list[Child] = []

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *error: object) -> None:
        if self.running:
            self._stop()
        while self._idle:
            self._idle.pop().dismiss()

    @property
    def full(self) -> bool:
        return len(self.running) >= self.most

    def start(self, name: str, stage: Stage, out: Path, alone: bool = False) -> None:
        """Make `stage` in the series `out` in a child process.

        It computes with its share of the cores that were free at the start, or with all of these if it runs `alone`.
        --threads and OMP_NUM_THREADS override both.
        """
        child = self._idle.pop() if self._idle else Child()
        self.running.append(child)
        child.begin(name, stage, out, given_threads() or max(1, self._cores // (1 if alone else self.most)))

    def next_made(self) -> tuple[str, Artifact]:
        """Wait for the next child to answer, and return the name of its step and the artifact. Raises the child's error."""
        ready = connection.wait([child.fileno() for child in self.running])
        child = next(child for child in self.running if child.fileno() in ready)
        self.running.remove(child)
        made = child.result()
        self._idle.append(child)
        return child.name, made

    def _stop(self) -> None:
        """Ask all children to save and end, and wait. A signal meanwhile asks again and limits the wait."""
        for patience in (None, STOP_SECONDS):
            for child in self.running:
                child.ask_to_stop()
            with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                for child in self.running:
                    child.wait(patience)
                return
        for child in self.running:
            child.kill()


def told_of(output: str, stage: type[Stage], error: object, known: Collection[str] = ()) -> str:
    """What to tell of an error in a step: its message, the output, and whose options the message names. known: those that the user's command has."""
    command, text = stage.command(), f"{error}"
    options = "|".join({*map(flag_of, roles(stage))} - {*known})
    names_it = re.compile(rf"`(?:realmctl )?{command}[ `]")  # such a sentence says whose options it means
    of_whom = [each for each in text.split(". ") if not names_it.search(each)]
    named = any(re.search(rf"(?:{options})(?![a-z-])", each) for each in of_whom)
    whose = f" The options named here are those of `realmctl {command}`; a pipeline file has them as keys of the output {output}."
    return f"{output} ({command}): {text}{whose if named else ''}"


def _request(name: str, stage: Stage, out: Path, threads: int) -> str:
    fields = {field: getattr(stage, field) for field in roles(type(stage))}
    kind = type(stage)
    request = {
        "name": name,
        "stage": [kind.__module__, kind.__name__],
        "fields": fields,
        "out": out,
        "threads": threads,
    }
    return json.dumps({**request, "quiet": log.is_quiet()}, default=_as_text)


def _as_text(value: object) -> str:
    return str(value.path if isinstance(value, Artifact) else value)


def _main() -> int:
    """Run the child: handle requests until one fails or none is left."""
    install_stop_now()
    standard_streams.prepare()
    answer = os.dup(1)
    os.dup2(2, 1)  # so that the parent does not read the output of a library as an answer
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    with suppress(KeyboardInterrupt, BrokenPipeError):  # asked to stop, or the parent has gone
        while True:
            request = json.loads(requests.get())
            use_threads(request["threads"])
            report = _report(request)
            os.write(answer, json.dumps(report).encode() + b"\n")
            if "error" in report:
                return int(report["exit_code"])
    return 0


def _read_requests(requests: SimpleQueue[bytes]) -> None:
    """Read requests until the parent closes the pipe or dies. Then stop this process."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # a buffered reader would hold a lock and block the exit
        for line in stdin:
            requests.put(line)
    os.kill(os.getpid(), signal.SIGTERM)


def _report(request: dict[str, Any]) -> dict[str, Any]:
    log.set_quiet(request["quiet"])
    log.set_label(request["name"])
    try:
        return _made(request)
    except KeyboardInterrupt as stop:
        return _failure(InterruptedRun(interruption(stop)))
    except Exception as error:
        if behind := interruption_behind(error):
            return _failure(InterruptedRun(interruption(behind)))
        known = at_the_end(error)
        if known is None:
            raise
        return _failure(known)


def _made(request: dict[str, Any]) -> dict[str, Any]:
    module, name = request["stage"]
    stage = getattr(importlib.import_module(module), name)
    return {"path": str(stage(**request["fields"]).make(request["out"]).path)}


def _failure(error: RealmctlError) -> dict[str, Any]:
    return {"error": " ".join(str(error).splitlines()), "exit_code": error.exit_code}


if __name__ == "__main__":
    sys.exit(_main())
