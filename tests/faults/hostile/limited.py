"""A command of realmctl in a child process with limits on processor time, and what it did."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from realmctl.cli.app import build

CPU_SECONDS, MEMORY_BYTES = 5, 2**30
HANGS_SECONDS = 300
CODES = {0, 2, 3, 4, 5, 6}
"""Exit codes of a result and of errors that are told in one paragraph; 1 would be a traceback."""


def in_child(arguments: Sequence[str], told: Path) -> int:
    """Run a command in a child process with limits. Returns its exit code; `told` receives what it printed."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(HANGS_SECONDS)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = CliRunner().invoke(build(arguments[0]), list(arguments))
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        found = {"code": result.exit_code, "output": result.output, "grown": grown, "error": repr(result.exception)}
        told.write_text(json.dumps(found))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(arguments: Sequence[str], told: Path) -> tuple[int, str]:
    """Run a command as `in_child`. Returns its exit code, and what is wrong; "" when it ended by itself and within the limits."""
    told.write_text("")
    command, status = " ".join(arguments), in_child(arguments, told)
    if status != 0:
        return status, f"{command}: ended by {status}"
    found: dict[str, Any] = json.loads(told.read_text())
    clear = found["code"] in CODES and "Traceback" not in found["output"]
    small = found["grown"] < MEMORY_BYTES
    what = f"{command}: {found['code']} {found['error']} {found['output'][-600:]} {found['grown']:,} bytes more"
    return found["code"], "" if clear and small else what
