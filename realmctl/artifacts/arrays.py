"""`.npy` files: opened with checks, written row by row in constant memory, and rows of different lengths end to end. Evenly spaced rows."""

from __future__ import annotations

import io
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from realmctl.artifacts.disk import CheckedFile
from realmctl.errors import InputError, as_realmctl_error

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
    except UNREADABLE as error:
        if known := as_realmctl_error(error, path):
            raise known from None
        try:
            array = np.load(path, allow_pickle=False)
        except UNREADABLE as error:
            raise InputError(f"The array {path} cannot be read: {_one_line(error)}. {remedy}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
        raise InputError(f"{path} does not hold an array of numbers. {remedy}")
    return array


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of a `.npy` file. NumPy pads it, so that its length does not depend on the number of rows."""
    header = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    return header.getvalue()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


def evenly_spaced(count: int, most: int) -> NDArray[np.int64]:
    """Return at most `most` rows of `count`, evenly spaced, with the first and the last."""
    return np.linspace(0, count - 1, min(most, count)).round().astype(np.int64)


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
        return npy_header(self._dtype, (self._rows,) if self._columns is None else (self._rows, self._columns))


class Ragged:
    """Rows of different lengths stored end to end: `values[offsets[i]:offsets[i+1]]` is row i. Both are memory-mapped.

    Args:
        values, offsets: The two `.npy` files: integers, and int64 [n + 1] that rise from 0 to the number of values.

    Raises:
        InputError: The offsets do not describe the values.
    """

    def __init__(self, values: Path, offsets: Path) -> None:
        # Plain arrays over the same maps: a row of numpy's memmap class takes eight times as long.
        self.values, self.offsets = np.asarray(open_array(values)), np.asarray(open_array(offsets))
        flat = all(array.ndim == 1 and array.dtype.kind in "iu" for array in (self.values, self.offsets))
        spans = flat and len(self.offsets) > 0 and self.offsets[0] == 0 and self.offsets[-1] == len(self.values)
        if not spans or (self.offsets[1:] < self.offsets[:-1]).any():
            raise InputError(f"{offsets} does not describe {values.name}. Make its artifact again.")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.integer[Any]]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Length of every row, int64."""
        return np.diff(self.offsets)
