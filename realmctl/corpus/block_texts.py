"""The text of every block, kept for the answer search, which reads thousands of blocks per question and step."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable

import numpy as np


class BlockTexts:
    """Strings by number in a memory-mapped temporary file, so that reading one needs no decompression and no JSON."""

    def __init__(self, texts: Iterable[str]) -> None:
        ends = [0]
        with tempfile.TemporaryFile() as file:
            for text in texts:
                ends.append(ends[-1] + file.write(text.encode()))
            file.write(b"\n")  # an empty file cannot be mapped
            file.flush()
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._ends = np.array(ends, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, row: int) -> str:
        return self._bytes[self._ends[row] : self._ends[row + 1]].decode()
