"""`.npy` files of unknown length, written row by row in constant memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


class ArrayAppender:
    """A `.npy` file that grows by rows; its header is written again at the end, when the length is known."""

    def __init__(self, path: Path, dtype: DTypeLike, columns: int | None = None) -> None:
        self._file, self._dtype, self._columns = path.open("wb"), np.dtype(dtype), columns
        self._rows = 0
        self._write_header()

    def append(self, rows: ArrayLike) -> None:
        """Add rows: numbers, or tuples of `columns` numbers."""
        array = np.asarray(rows, self._dtype)
        self._file.write(array.tobytes())
        self._rows += len(array)

    def close(self) -> None:
        """Write the true length."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        """numpy pads a header so that a longer first dimension still fits in it."""
        shape = (self._rows,) if self._columns is None else (self._rows, self._columns)
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)
