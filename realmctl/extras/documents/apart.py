"""Run a program that parses files of unknown authors in a process of its own, so that no file can take down realmctl or the machine."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import realmctl
from realmctl.errors import ResourceError
from realmctl.extras.documents.many_parses import LENGTH, OUT_OF_MEMORY

MAX_PARSE_SECONDS = 120
"""Computing by the program."""
MAX_PARSE_WAIT = 300
"""Seconds on a clock. On a busy machine computing takes longer than its own seconds."""
MAX_PARSE_MEMORY = 2**30
MAX_PARSE_OUTPUT = 2**28
MEMORY_OF_A_BYTE = 24
"""Bytes of memory for each of a page of HTML beyond MAX_PARSE_MEMORY: the parser makes a tree of nodes of it."""
LARGE = 2**22
"""A document of so many bytes is the last of its process, whose memory the system gets back."""
PIECE = 2**20
KILLED = "the system ended its reading, perhaps for want of memory"


@dataclass(frozen=True)
class Parsed:
    """What a program wrote.

    stopped: Which limit it reached, as the end of a sentence that says why a file cannot be read; empty if none. code: Its exit code.
    """

    output: bytes
    errors: str
    stopped: str
    code: int


def _limit(process: subprocess.Popen[bytes], limits: Mapping[str, tuple[int, int]]) -> None:
    """Give a process its limits, {name: (soft, hard)}, -1 for none. Raises ResourceError where the system has none such."""
    try:
        from resource import prlimit
    except ImportError:  # Windows, macOS
        raise ResourceError(
            "Documents of this format are read in a process whose memory and time are limited, which only Linux can do. "
            "Use a container, or write the documents as text or JSON lines."
        ) from None
    import resource

    with suppress(ProcessLookupError):
        for name, soft_and_hard in limits.items():
            prlimit(process.pid, getattr(resource, name), soft_and_hard)


def parse(command: Sequence[str | Path], data: bytes, address_space: int = 0) -> Parsed:
    """Give a program the data on stdin, and return what it writes. Limits hold from before the first byte.

    Args:
        command: The program and its arguments.
        data: What it reads.
        address_space: Bytes of memory that it may map; 0 if it limits its memory itself.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=errors) as process:
            limits = {
                "RLIMIT_CPU": (MAX_PARSE_SECONDS, MAX_PARSE_SECONDS + 5),
                "RLIMIT_FSIZE": (MAX_PARSE_OUTPUT, MAX_PARSE_OUTPUT),
                "RLIMIT_CORE": (0, 0),
                **({"RLIMIT_AS": (address_space, address_space)} if address_space else {}),
            }
            try:
                _limit(process, limits)
            except BaseException:
                process.kill()
                raise
            stopped = ""
            try:
                process.communicate(data, MAX_PARSE_WAIT)
            except subprocess.TimeoutExpired:
                process.kill()
                stopped = _too_long()
            except BaseException:  # such as a signal to realmctl
                process.kill()
                process.wait()
                raise
        output.seek(0)
        errors.seek(0)
        stopped = stopped or {
            -signal.SIGXCPU: _too_much_computing(),
            -signal.SIGKILL: KILLED,
            -signal.SIGXFSZ: _too_much_text(),
        }.get(process.returncode, "")
        return Parsed(output.read(), errors.read(2**16).decode(errors="replace"), stopped, process.returncode)


def _too_much_computing() -> str:
    return f"it takes more than {MAX_PARSE_SECONDS} s of a core"


def _too_much_text() -> str:
    return f"its text has more than {MAX_PARSE_OUTPUT // 2**20} MiB"


def _too_long() -> str:
    return f"it takes longer than {MAX_PARSE_WAIT} s"


class ManyParses:
    """A program that parses many documents, one after the other (`many_parses.answer`), so that small ones need no process each.

    The limits hold for each document. One that meets a limit ends the process, and the next document begins another one.

    Args:
        module: The program, as `python -m` runs it.
    """

    def __init__(self, module: str) -> None:
        self._module, self._lock = module, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def parse(self, asked: Mapping[str, object], data: bytes) -> tuple[Any, str]:
        """Return the reply to a request about a document, and an empty text; or None, and which limit it met, as in `Parsed.stopped`.

        Raises RuntimeError for a bug of the program.
        """
        with self._lock:
            reply, why = self._parsed(asked, data)
            if why == KILLED:  # perhaps before it was asked
                reply, why = self._parsed(asked, data)
        if reply is not None and "bug" in reply:
            raise RuntimeError(f"{self._module}: {reply['bug']}")
        return reply, why

    def _parsed(self, asked: Mapping[str, object], data: bytes) -> tuple[Any, str]:
        process = self._running()
        memory = MAX_PARSE_MEMORY + MEMORY_OF_A_BYTE * len(data)
        _limit(process, {"RLIMIT_AS": (memory, -1)})
        request = json.dumps({**asked, "bytes": len(data), "seconds": MAX_PARSE_SECONDS}).encode()
        end = time.monotonic() + MAX_PARSE_WAIT
        try:
            _send(process.stdin, len(request).to_bytes(LENGTH) + request + data, end)
            size = int.from_bytes(_received(process.stdout, LENGTH, end))
            if size > MAX_PARSE_OUTPUT:
                self.end()
                return None, _too_much_text()
            reply = json.loads(_received(process.stdout, size, end))
            if len(data) >= LARGE:
                self.end()
            return reply, ""
        except TimeoutError:
            self.end()
            return None, _too_long()
        except (EOFError, BrokenPipeError):
            return None, self._why_ended(memory)
        except BaseException:  # such as a signal to realmctl
            self.end()
            raise

    def end(self) -> None:
        """End the process, if there is one. The next document begins another one."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return self._process
        self.end()
        root = str(Path(realmctl.__file__).parents[1])
        paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": paths},
            process_group=0,  # Ctrl-C is for realmctl alone, which ends it
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        if self._owner != os.getpid():
            atexit.register(self.end)
        self._owner = os.getpid()
        return self._process

    def _why_ended(self, memory: int) -> str:
        assert self._process is not None
        code = self._process.wait()
        self.end()
        if code == -signal.SIGPROF:
            return _too_much_computing()
        if code == -signal.SIGKILL:
            return KILLED
        if code in (OUT_OF_MEMORY, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
            return f"its parser takes more than {memory / 2**30:.1f} GiB of memory, or fails at it"
        raise RuntimeError(f"{self._module} ended with code {code}")


def _send(stream: Any, data: bytes, end: float) -> None:
    """Write all to a pipe that does not block. Raises TimeoutError at the time `end`, and BrokenPipeError."""
    rest = memoryview(data)
    while rest:
        _wait(stream, select.POLLOUT, end)
        rest = rest[os.write(stream.fileno(), rest[:PIECE]) :]


def _received(stream: Any, size: int, end: float) -> bytes:
    """Read so many bytes. Raises TimeoutError at the time `end`, and EOFError where a pipe ends before."""
    found = bytearray()
    while len(found) < size:
        _wait(stream, select.POLLIN, end)
        piece = os.read(stream.fileno(), min(PIECE, size - len(found)))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _wait(stream: Any, event: int, end: float) -> None:
    asked = select.poll()
    asked.register(stream.fileno(), event)
    if not asked.poll(max(0.0, 1000 * (end - time.monotonic()))):
        raise TimeoutError
