"""Exact search over 8-bit copies of the vectors, with rescoring from the vectors: a quarter of the memory of float32, and no build.

Each dimension is divided into 255 steps between its least and greatest value. Its middle is left out of the codes: it
adds the same to every score of a query. N rows, D dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts.arrays import ArrayAppender, open_array
from realmctl.artifacts.hashing import digest_file
from realmctl.errors import InputError
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import IndexDescription, IndexType, write_index_description
from realmctl.index.merged import MergedIndex, bounds
from realmctl.index.protocol import Index, RowIds, Vectors
from realmctl.index.rescored import RescoredIndex
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import chunks

CODES_FILE = "codes.npy"
LARGEST = 127


class Int8Index(RescoredIndex):
    """Finds rows by their codes, on `device`, where the codes stay (`realmctl.index.protocol.Index`).

    `codes` is int8 [N, D], `step_D` float32 the width of a step of each dimension.
    """

    oversampled = 4

    def __init__(
        self, codes: NDArray[np.int8], step_D: NDArray[np.float32], vectors: Vectors, device: str = "cpu"
    ) -> None:
        super().__init__(vectors)
        self._codes, self._step_D = ExactIndex(codes, device), step_D

    def find(self, queries_BD: NDArray[np.float32], k: int) -> tuple[None, RowIds]:
        return None, self._codes.search(queries_BD * self._step_D, k)[1]


@dataclass(frozen=True)
class Int8Description(IndexDescription):
    """Content of `index.json` of an int8 index."""

    step: list[float] = field(default_factory=list)
    """Width of a step of each dimension."""
    sha256: str = ""
    """Hash of the codes."""

    def check(self) -> None:
        super().check()
        if len(self.step) != self.dimension or not all(type(each) is float and each > 0 for each in self.step):
            raise ValueError(f"step is not {self.dimension} numbers above 0")


class Int8IndexType(IndexType):
    """`codes.npy` beside the vectors."""

    description = Int8Description

    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        least = np.full(vectors.shape[1], np.inf, np.float32)
        greatest = -least
        for _, rows in chunks(vectors):
            least, greatest = np.minimum(least, rows.min(axis=0)), np.maximum(greatest, rows.max(axis=0))
        middle, half = least / 2 + greatest / 2, greatest / 2 - least / 2
        step = np.maximum(half / LARGEST, np.finfo(np.float32).tiny)
        codes = ArrayAppender(folder / CODES_FILE, np.int8, vectors.shape[1])
        try:
            for _, rows in chunks(vectors):
                codes.append(np.rint((rows - middle) / step).clip(-LARGEST, LARGEST).astype(np.int8))
        finally:
            codes.close()
        count, dimension = vectors.shape
        digest = digest_file(folder / CODES_FILE)
        write_index_description(folder, Int8Description("int8", dimension, count, "ip", step.tolist(), digest))
        return {}

    def size(self, settings: IndexSettings, rows: int, dimension: int) -> int:
        return rows * dimension

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        assert isinstance(description, Int8Description)
        return Int8Index(*_codes(folder, description), vectors, device)

    def open_part(
        self, folder: Path, description: IndexDescription, vectors: Vectors, device: str, part: int, parts: int
    ) -> MergedIndex:
        assert isinstance(description, Int8Description)
        codes, step = _codes(folder, description)
        first, stop = bounds(len(vectors), parts)[part]
        own = [(first, Int8Index(codes[first:stop], step, vectors[first:stop], device))] if stop > first else []
        return MergedIndex(own, vectors)


def _codes(folder: Path, description: Int8Description) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    path = folder / CODES_FILE
    if not path.is_file() or digest_file(path) != description.sha256:
        raise InputError(
            f"The codes {path} are missing or damaged (their SHA-256 is not the one in index.json). Build the index again."
        )
    codes: NDArray[np.int8] = open_array(path, mode="c", remedy="Build the index again.")
    if codes.dtype != np.int8 or codes.shape != (description.count, description.dimension):
        raise InputError(f"{path} holds {codes.dtype} of shape {list(codes.shape)}. Build the index again.")
    return codes, np.array(description.step, np.float32)
