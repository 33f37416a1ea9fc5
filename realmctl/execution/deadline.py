"""A time limit for one piece of work. A page that the cleaning cannot finish is skipped, and the run continues.

CPU time counts, not the time on a clock. So a busy machine skips the same pages as a quiet one.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class DeadlineError(BaseException):
    """The work inside `deadline` took too long. The caller skips the page, so a user never sees this error.

    It is no Exception: it may come at any place of the work, and a handler of failures there must not take it for one.
    """


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise DeadlineError inside the `with` block once it has used `seconds` of CPU time.

    On the main thread an interval timer does this, which interrupts regular expressions too. It counts the time of all threads. On
    another thread an asynchronous exception does it, which has to wait for the running C call to end.
    """
    if threading.current_thread() is threading.main_thread():
        yield from _by_timer(seconds)
    else:
        yield from _by_exception(seconds)


def _by_timer(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise DeadlineError

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _by_exception(seconds: float) -> Iterator[None]:
    target, over = ctypes.c_ulong(threading.get_ident()), threading.Event()
    lock, used = threading.Lock(), _clock_of_this_thread()
    end = used() + seconds

    def watch() -> None:
        with suppress(OSError):  # the thread has ended, and its clock with it
            while (left := end - used()) > 0:
                if over.wait(left):
                    return
        with lock:
            if not over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(DeadlineError))

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        with lock:
            over.set()


def _clock_of_this_thread() -> Callable[[], float]:
    """A clock of the CPU time of this thread that other threads can read; an ordinary clock on systems without one."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    clock = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(clock)
