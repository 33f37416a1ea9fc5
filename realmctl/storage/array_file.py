"""`.npy` files that are written row by row in constant memory, when their length is not known beforehand."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from realmctl.storage.checked_file import CheckedFile

PENDING_BYTES = 2**16
"""Bytes that are written and checked at once. Most appends are a few bytes."""


class ArrayAppender:
    """A `.npy` file that grows by rows. `close` writes what is pending, and the header again, with the number of rows.

    Args:
        path: The file. It is replaced if it exists.
        dtype: Type of the numbers.
        columns: Numbers in a row; None for an array of one dimension.
    """

    def __init__(self, path: Path, dtype: DTypeLike, columns: int | None = None) -> None:
        self._dtype, self._columns, self._rows = np.dtype(dtype), columns, 0
        self._file, self._pending = CheckedFile(path, self._header()), bytearray()

    def append(self, rows: ArrayLike) -> None:
        """Add rows: numbers, or tuples of `columns` numbers."""
        array = np.asarray(rows, self._dtype)
        self._pending += array.tobytes()
        self._rows += len(array)
        if len(self._pending) >= PENDING_BYTES:
            self._write()

    def close(self) -> None:
        """Write the final header and read the file back. Raises OSError when bytes were lost."""
        self._write()
        self._file.close(self._header())

    def _write(self) -> None:
        self._file.write(bytes(self._pending))
        self._pending.clear()

    def _header(self) -> bytes:
        """The header for the present number of rows. numpy pads it, so that every number of rows gives one length."""
        shape = (self._rows,) if self._columns is None else (self._rows, self._columns)
        description = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, description)
        return header.getvalue()
