"""A type of index that searches 8-bit copies of the vectors, a quarter of the size of float32."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.index.index_type import IndexDescription, IndexType, write_description
from realmctl.index.protocol import Index, RowIds, Scores, Vectors, by_score, check_queries
from realmctl.index.settings import IndexSettings

CODES, SCALES = "codes.npy", "scales.npy"


class Int8Index:
    """Finds rows by their 8-bit codes, and scores these rows with the original vectors."""

    def __init__(self, codes: NDArray[np.int8], scales: NDArray[np.float32], vectors: Vectors) -> None:
        self._codes, self._scales, self._vectors = codes, scales, vectors

    @property
    def dimension(self) -> int:
        return int(self._vectors.shape[1])

    @property
    def count(self) -> int:
        return len(self._vectors)

    def search(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        queries = check_queries(queries_BD, k, dimension=self.dimension)
        approximate = queries @ self._codes.astype(np.float32).T * self._scales
        ids = np.argsort(-approximate, axis=1, kind="stable")[:, :k]
        return by_score(np.einsum("bd,bkd->bk", queries, self.vectors(ids)), ids)

    def vectors(self, ids: RowIds) -> NDArray[np.float32]:
        return np.asarray(self._vectors[ids], dtype=np.float32)


class Int8IndexType(IndexType):
    """Each vector is stored as 8-bit numbers and one scale."""

    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        rows = np.asarray(vectors, dtype=np.float32)
        scales = np.maximum(np.abs(rows).max(axis=1), np.finfo(np.float32).tiny) / 127
        np.save(folder / CODES, np.rint(rows / scales[:, None]).astype(np.int8), allow_pickle=False)
        np.save(folder / SCALES, scales, allow_pickle=False)
        write_description(folder, IndexDescription("int8", dimension=rows.shape[1], count=len(rows)))
        return {}

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        codes = np.load(folder / CODES, mmap_mode="r", allow_pickle=False)
        return Int8Index(codes, np.load(folder / SCALES, allow_pickle=False), vectors)
