"""Signals that ask a run to stop: finish the step, save a checkpoint, exit with the documented code.

SIGTERM comes from `kill` and batch systems, SIGINT from Ctrl-C, SIGHUP from a lost terminal, SIGUSR1 from Slurm as a
warning before the time limit, SIGQUIT from Ctrl-\\. A second signal stops the run at once. A signal that the parent
process ignores, as `nohup` does with SIGHUP, stays ignored.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from realmctl.errors import InterruptedRun, StoppedBySignal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT)


_stopped: KeyboardInterrupt | None = None


def stop_now(number: int, frame: FrameType | None) -> None:
    """Signal handler outside training: stop at once. What resumable stages have saved stays.

    Raises:
        KeyboardInterrupt: For SIGINT.
        StoppedBySignal: For every other signal.
    """
    global _stopped
    told = f"stopped by {_name(number)}. Run the same command again; resumable stages continue."
    _stopped = KeyboardInterrupt() if number == signal.SIGINT else StoppedBySignal(told)
    raise _stopped


def install_stop_now() -> None:
    """Make every stop signal that is not ignored call `stop_now`. For the main thread."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop_now)


def forget_stops() -> None:
    """A command begins: what stopped one before it does not count."""
    global _stopped
    _stopped = None


def interruption_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The signal that an exception comes from, or that came before it: code in C replaces `stop_now`'s exception by one of its own.

    An import raises ImportError, and PyTorch ValueError for a tensor that safetensors reads.
    """
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found or _stopped


class Stop:
    """The request to stop this process, if there is one: the number of its signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: remember the first request, stop at once for the second."""
        if self.signal is not None:
            stop_now(number, frame)
        self.signal = number

    def leave(self, saved: str) -> None:
        """Raise the exception that corresponds to the signal.

        Args:
            saved: What has been saved, for the message: "with a checkpoint at step 3 of 8".
        """
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise InterruptedRun(f"stopped by {_name(self.signal)}, {saved}. Run the same command again to continue.")


_current: Stop | None = None


@contextmanager
def deferred() -> Iterator[Stop]:
    """Within the block, a stop signal only sets a flag. In a thread other than the main thread nothing changes."""
    global _current
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before, outer = {number: signal.getsignal(number) for number in STOP_SIGNALS}, _current
    handled = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    try:
        _current = stop
        for number in handled:
            signal.signal(number, stop.ask)
        yield stop
    finally:
        _current = outer
        for number, handler in handled.items():
            signal.signal(number, handler or signal.SIG_DFL)


class StopRequested(Exception):
    """Raised by a wait between steps that ends early because the run was asked to stop."""


def asked_to_stop() -> bool:
    """Return whether the innermost `deferred` block has been asked to stop. For loops that wait inside it."""
    return _current is not None and _current.signal is not None


def _name(number: int | None) -> str:
    return signal.Signals(number).name if number is not None else "another process"
