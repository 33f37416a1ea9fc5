"""`.npy` files: written row by row in constant memory when their length is not known beforehand, and opened with checks."""

from __future__ import annotations

import io
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from realmctl.artifacts.checked_file import CheckedFile
from realmctl.errors import InputError

PENDING_BYTES = 2**16
"""Bytes that are written and checked at once. Most appends are a few bytes."""

UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    SyntaxError,
    TypeError,
    OverflowError,
    MemoryError,
    RecursionError,
    TokenError,
)
"""What numpy raises for files that are no arrays."""


def open_array(path: Path, mode: Literal["r", "c"] = "r", remedy: str = "Make its artifact again.") -> NDArray[Any]:
    """Map an array of numbers without reading it. An empty one cannot be mapped and is loaded.

    Args:
        path: The `.npy` file.
        mode: `r` for an array that cannot be changed, `c` for one whose changes stay in memory.
        remedy: What to do when it cannot be read; the end of the message.

    Raises:
        InputError: The file is missing, cut short, or not an array of numbers.
    """
    try:
        array: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    except UNREADABLE:
        try:
            array = np.load(path, allow_pickle=False)
        except UNREADABLE as error:
            raise InputError(f"The array {path} cannot be read: {_one_line(error)}. {remedy}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
        raise InputError(f"{path} does not hold an array of numbers. {remedy}")
    return array


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


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
