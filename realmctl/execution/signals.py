"""SIGTERM and Ctrl-C: finish the step, save, leave with the documented code. A second one stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from realmctl.errors import InterruptedRun


def stop_now(number: int, frame: FrameType | None) -> None:
    """Handler outside training: leave at once. What resumable stages have saved stays."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise InterruptedRun("stopped by SIGTERM. Run the same command again; resumable stages go on where they were.")


class Stop:
    """Whether somebody asked this process to stop, and how."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: remember the first request, obey the second at once."""
        if self.signal is not None:
            stop_now(number, frame)
        self.signal = number

    def leave(self, saved: str) -> None:
        """Raise what the signal stands for, once `saved` says what has been kept."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise InterruptedRun(f"stopped by SIGTERM, {saved}. Run the same command again to go on.")


_current: Stop | None = None


@contextmanager
def deferred() -> Iterator[Stop]:
    """Within the block, SIGTERM and SIGINT only set a flag. Outside the main thread nothing is changed."""
    global _current
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before, outer = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}, _current
    try:
        _current = stop
        for number in before:
            signal.signal(number, stop.ask)
        yield stop
    finally:
        _current = outer
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


class StopRequested(Exception):
    """Raised between steps by work that noticed a request to stop while it was waiting."""


def asked_to_stop() -> bool:
    """Whether the innermost `deferred` block has been asked to stop: for loops that wait inside it."""
    return _current is not None and _current.signal is not None
