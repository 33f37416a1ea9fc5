"""The matrix of an index: `vectors.npy`, float16 or float32 [n, D], memory-mapped and checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts.arrays import open_array
from realmctl.errors import InputError, MismatchError
from realmctl.index.protocol import Vectors

VECTORS_FILE = "vectors.npy"
ROWS_PER_CHUNK = 16_384
"""Rows scored or checked at once: 8 MB of float32 at 128 dimensions, measured faster than all at once."""


def open_vectors(path: Path, *, count: int | None = None, dimension: int | None = None) -> Vectors:
    """Map a matrix of vectors without reading it.

    The map is copy-on-write: torch can use it without a copy, and the file cannot be changed through it.

    Raises:
        InputError: the file is missing, cut short, or not a matrix of float16 or float32.
        MismatchError: the shape is not the expected one.
    """
    vectors: Vectors = open_array(path, mode="c", remedy="Embed the blocks again.")
    if vectors.ndim != 2 or vectors.dtype not in (np.float16, np.float32) or 0 in vectors.shape:
        raise InputError(
            f"{path} holds {vectors.dtype} of shape {list(vectors.shape)}, where a matrix of float16 or "
            "float32 with one row a block is needed. Embed the blocks again."
        )
    expected = (count or vectors.shape[0], dimension or vectors.shape[1])
    if vectors.shape != expected:
        raise MismatchError(
            f"{path} holds {vectors.shape[0]} vectors of dimension {vectors.shape[1]}, but its index was "
            f"built from {expected[0]} of dimension {expected[1]}. Build the index again."
        )
    return vectors


def chunks(vectors: Vectors, rows: int | None = None) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield (first row, float32 [rows, D]) chunk by chunk, ROWS_PER_CHUNK rows by default. Only float16 is copied."""
    rows = rows or ROWS_PER_CHUNK
    for start in range(0, len(vectors), rows):
        yield start, np.asarray(vectors[start : start + rows], dtype=np.float32)


def check_finite(vectors: Vectors, name: str) -> None:
    """Raise InputError for NaN and infinite values. One such row makes a graph search return wrong rows without an error."""
    for start, chunk in chunks(vectors):
        bad = np.flatnonzero(~np.isfinite(chunk).all(axis=1))
        if len(bad):
            raise InputError(
                f"Row {start + bad[0]} of {name} holds NaN or infinite values, so no index can be built from "
                "it. The weights of the retriever are probably damaged or its training diverged; embed with "
                "another one."
            )
