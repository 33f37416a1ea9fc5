"""A type of index that searches the signs of the vectors: one bit for each number, a 32nd of the size of float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.index.index_type import IndexDescription, IndexType, write_index_description
from realmctl.index.protocol import Index, RowIds, Vectors
from realmctl.index.rescored import RescoredIndex
from realmctl.index.settings import IndexSettings
from realmctl.pipeline import setting
from realmctl.pipeline.settings import Settings

BITS = "bits.npy"


class BinaryOptions(Settings):
    """`--option rescored=20`."""

    rescored: int = setting("Rows that are scored with their vectors, for each answer.", default=10, at_least=1)


class BinaryIndex(RescoredIndex):
    """Finds the rows that share most signs with the query. Their scores are those of the vectors."""

    def __init__(self, bits: NDArray[np.uint8], vectors: Vectors, rescored: int) -> None:
        super().__init__(vectors)
        self._bits, self.oversampled = bits, rescored

    def find(self, queries_BD: NDArray[np.float32], k: int) -> RowIds:
        unequal = self._bits ^ np.packbits(queries_BD > 0, axis=1)[:, None]
        return np.argsort(np.bitwise_count(unequal).sum(axis=2), axis=1, kind="stable")[:, :k]


@dataclass(frozen=True)
class BinaryDescription(IndexDescription):
    """What `index.json` says beside the type and the shape."""

    rescored: int = 10


class BinaryIndexType(IndexType):
    """`bits.npy` beside the vectors."""

    description, options = BinaryDescription, BinaryOptions

    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        count, dimension = vectors.shape
        np.save(folder / BITS, np.packbits(np.asarray(vectors) > 0, axis=1), allow_pickle=False)
        rescored = settings.options_of(BinaryOptions).rescored
        write_index_description(folder, BinaryDescription("binary", dimension, count, rescored=rescored))
        return {}

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        assert isinstance(description, BinaryDescription)
        return BinaryIndex(np.load(folder / BITS, mmap_mode="r", allow_pickle=False), vectors, description.rescored)
