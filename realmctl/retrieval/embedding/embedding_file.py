"""`embeddings.npy`, written range by range: a killed run continues where it stopped and ends with the same bytes.

The file has its final size from the start, so that a disk that is too small is an error at once. It is written with
`pwrite` and not through a memory map, because a full disk kills a process that writes to a map. A range counts as done
when its bytes are on the disk and the journal, one JSON line per range, holds their hash.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts.arrays import npy_header
from realmctl.artifacts.disk import OUTPUT_OPTIONS, not_as_written
from realmctl.errors import ResourceError
from realmctl.retrieval.embedding.settings import Dtype

JOURNAL = Path(".scratch", "ranges", "done.jsonl")
"""The journal in the folder of an unfinished run."""


class EmbeddingFile:
    """A matrix [rows, dimension] on disk, filled in any order. Use as a context manager.

    Raises ResourceError when the disk has no room for the whole file.
    """

    def __init__(self, path: Path, journal: Path, rows: int, dimension: int, dtype: Dtype) -> None:
        self.path, self._journal_path = path, journal
        self.dtype = np.dtype(dtype)
        self._rows = rows
        self._header = npy_header(self.dtype, (rows, dimension))
        self._row_bytes = dimension * self.dtype.itemsize
        self._size = len(self._header) + rows * self._row_bytes

    def __enter__(self) -> EmbeddingFile:
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        size = os.fstat(self._handle).st_size
        if size != self._size or os.pread(self._handle, len(self._header), 0) != self._header:
            self._journal_path.unlink(missing_ok=True)
            self._allocate()
        self._journal = self._journal_path.open("a")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()
        os.close(self._handle)

    def write(self, start: int, vectors: NDArray[np.floating]) -> None:
        """Write `vectors` at row `start`, flush them to the disk, read them back, and record the range in the journal."""
        data = np.ascontiguousarray(vectors, dtype=self.dtype).tobytes()
        at = len(self._header) + start * self._row_bytes
        self._write_all(data, at)
        os.fdatasync(self._handle)
        record = {"start": start, "stop": start + len(vectors), "sha256": hashlib.sha256(data).hexdigest()}
        if self._hash(start, start + len(vectors)) != record["sha256"]:
            raise not_as_written(self.path)
        # Newline first: a kill may have cut the previous line short.
        self._journal.write("\n" + json.dumps(record))
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def done(self) -> set[tuple[int, int]]:
        """(start, stop) of the ranges in the journal whose bytes still have the recorded hash."""
        return {(start, stop) for start, stop, sha256 in self._records() if self._hash(start, stop) == sha256}

    def _records(self) -> Iterator[tuple[int, int, str]]:
        for line in self._journal_path.read_bytes().splitlines():
            try:
                record = json.loads(line)
                start, stop, sha256 = record["start"], record["stop"], record["sha256"]
                if type(start) is type(stop) is int and 0 <= start < stop <= self._rows:
                    yield start, stop, sha256
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # a line that a kill cut short, or that is damaged

    def _hash(self, start: int, stop: int) -> str:
        at, size = len(self._header) + start * self._row_bytes, (stop - start) * self._row_bytes
        return hashlib.sha256(os.pread(self._handle, size, at)).hexdigest()

    def _allocate(self) -> None:
        try:
            os.ftruncate(self._handle, 0)
            os.posix_fallocate(self._handle, 0, self._size)
            os.pwrite(self._handle, self._header, 0)
            if os.pread(self._handle, len(self._header), 0) != self._header:
                raise not_as_written(self.path)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                raise
            raise ResourceError(
                f"The embeddings need {self._size / 1e9:.2f} GB at {self.path}, and the disk has no room for "
                f"them ({error.strerror}). Free some space, or choose a folder on another disk ({OUTPUT_OPTIONS}). "
                "`realmctl embed --dtype float16` needs half of it."
            ) from None

    def _write_all(self, data: bytes, at: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._handle, view, at)
            view, at = view[written:], at + written
