"""A file that is read back when it is closed, so that a write that was lost is noticed."""

from __future__ import annotations

import errno
import io
import os
import zlib
from pathlib import Path

PIECE_BYTES = 4 * 2**20


class CheckedFile:
    """A new binary file, written from its beginning to its end. An existing file of that name is replaced.

    `close` compares size and checksum (CRC-32) of what is in the file with what was written. This detects a disk or
    driver that reports success for a write that did not happen.

    Args:
        path: The file. A symbolic or hard link of this name is removed first, so that its target is not changed.
        head: The first bytes. `close` can replace them by as many others.
    """

    def __init__(self, path: Path, head: bytes = b"") -> None:
        self.path, self._head = path, head
        path.unlink(missing_ok=True)
        self._file = io.BufferedWriter(_raw_file(path))
        self._file.write(head)
        self._size, self._checksum = len(head), 0

    def write(self, data: bytes) -> int:
        """Append `data` and return its length."""
        self._file.write(data)
        self._size += len(data)
        self._checksum = zlib.crc32(data, self._checksum)
        return len(data)

    def close(self, head: bytes | None = None) -> None:
        """Finish the file, with another `head` if one is given, and compare it with what was written.

        Raises:
            OSError: EIO, when the file does not hold what was written.
        """
        if head is not None:
            self._file.seek(0)
            self._file.write(head)
            self._head = head
        self._file.close()
        self._compare()

    def abandon(self) -> None:
        """Close the file without a check. For a write that failed."""
        self._file.close()

    def _compare(self) -> None:
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != self._size:
                raise not_as_written(self.path, f"it holds {size} bytes, and {self._size} were written")
            head, checksum = file.read(len(self._head)), 0
            while piece := file.read(PIECE_BYTES):
                checksum = zlib.crc32(piece, checksum)
        if head != self._head or checksum != self._checksum:
            raise not_as_written(self.path)


def not_as_written(path: Path, reason: str = "it does not hold the bytes that were written") -> OSError:
    """Return the error for a file that was read back and is not what was written."""
    return OSError(errno.EIO, f"{os.strerror(errno.EIO)} ({reason})", str(path))


def _raw_file(path: Path) -> io.RawIOBase:
    """The unbuffered file below a `CheckedFile`. Tests replace this function to lose writes."""
    return io.FileIO(path, "xb")
