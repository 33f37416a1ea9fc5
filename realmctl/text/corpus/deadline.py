"""A time limit for one piece of work. A page that the cleaning cannot finish is skipped, and the run continues."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class DeadlineError(Exception):
    """The work inside `deadline` took too long. The caller skips the page, so a user never sees this error."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise DeadlineError inside the `with` block once it has run for `seconds`.

    On the main thread an interval timer does this, which interrupts regular expressions too. On another thread an
    asynchronous exception does it, which has to wait for the running C call to end.
    """
    if threading.current_thread() is threading.main_thread():
        yield from _by_timer(seconds)
    else:
        yield from _by_exception(seconds)


def _by_timer(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise DeadlineError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _by_exception(seconds: float) -> Iterator[None]:
    target, over = ctypes.c_ulong(threading.get_ident()), threading.Event()
    lock = threading.Lock()

    def ring() -> None:
        with lock:
            if not over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(DeadlineError))

    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            over.set()
        timer.cancel()
