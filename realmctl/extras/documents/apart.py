"""Run a program that parses a file of an unknown author in a process of its own, so that the file can take down neither realmctl nor the machine."""

from __future__ import annotations

import resource
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_PARSE_SECONDS = 120
"""Computing by the program."""
MAX_PARSE_MEMORY = 2**30
MAX_PARSE_OUTPUT = 2**28


@dataclass(frozen=True)
class Parsed:
    """What a program wrote.

    stopped: Which limit it reached, as the end of a sentence that says why a file cannot be read; empty if none. code: Its exit code.
    """

    output: bytes
    errors: str
    stopped: str
    code: int


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
                resource.RLIMIT_CPU: (MAX_PARSE_SECONDS, MAX_PARSE_SECONDS + 5),
                resource.RLIMIT_FSIZE: (MAX_PARSE_OUTPUT, MAX_PARSE_OUTPUT),
                resource.RLIMIT_CORE: (0, 0),
                **({resource.RLIMIT_AS: (address_space, address_space)} if address_space else {}),
            }
            with suppress(ProcessLookupError):
                for name, soft_and_hard in limits.items():
                    resource.prlimit(process.pid, name, soft_and_hard)
            try:
                process.communicate(data)
            except BaseException:  # such as a signal to realmctl
                process.kill()
                process.wait()
                raise
        output.seek(0)
        errors.seek(0)
        stopped = {
            -signal.SIGXCPU: f"it takes more than {MAX_PARSE_SECONDS} s of a core",
            -signal.SIGKILL: "the system ended its reading, perhaps for want of memory",
            -signal.SIGXFSZ: f"its text has more than {MAX_PARSE_OUTPUT // 2**20} MiB",
        }.get(process.returncode, "")
        return Parsed(output.read(), errors.read(2**16).decode(errors="replace"), stopped, process.returncode)
