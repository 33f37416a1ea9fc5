"""Forked children: the same code as here, with its modules loaded, and killed as any process is."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from realmctl.errors import as_realmctl_error
from realmctl.execution.signals import STOP_SIGNALS

UNCAUGHT = 70
"""Exit code of a child that ended with an exception; the traceback is in its log."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user or mount a disk")


def forked(act: Callable[[], object], log: Path) -> int:
    """Do `act` in a child process whose output goes to the end of `log`. Returns the process id of the child.

    The child ends with the exit code that `act` returns, if that is a number, and otherwise with 0.
    """
    child = os.fork()
    if child:
        return child
    code = UNCAUGHT
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        result = act()
        code = result if isinstance(result, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(child: int, within: float | None = None) -> int | None:
    """Wait for a child: its exit code (negative: the signal), or None when it runs after `within` seconds still."""
    end = None if within is None else time.monotonic() + within
    while True:
        found, status = os.waitpid(child, 0 if end is None else os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if end is not None and time.monotonic() >= end:
            return None
        time.sleep(0.001)


def killed(child: int) -> bool:
    """Kill a child, and return whether the kill came before its end."""
    os.kill(child, signal.SIGKILL)
    return ended(child) == -signal.SIGKILL


def exit_code(act: Callable[[], object]) -> int:
    """The exit code that the command line would end with. It is 0, or that of one clear error, which is printed."""
    try:
        act()
    except Exception as error:
        known = as_realmctl_error(error)
        if known is None:
            raise
        assert "\n" not in str(known)
        print(known)
        return known.exit_code
    return 0
