"""stdin, stdout and stderr of a process, which its caller may have closed, and whose readers may go away."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class _Lossy(io.RawIOBase):
    """A file descriptor whose failed writes are lost: the reader went away, the terminal hung up, or its disk is full."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: Any) -> int:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            pass
        return len(data)


def prepare() -> None:
    """Let this process work whatever its caller did to its standard streams.

    One that is closed becomes /dev/null; else the next file that is opened would take its number, and get what is printed. What
    cannot be written to stderr is lost: messages are a convenience, and the work goes on without them.
    """
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        encoding = sys.stderr.encoding
        sys.stderr = io.TextIOWrapper(_Lossy(2), encoding, "backslashreplace", write_through=True)
