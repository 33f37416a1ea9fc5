"""An index or embeddings: vectors in, rows out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index, RowIds, Scores, Vectors
from realmctl.index.vectors import open_vectors
from realmctl.models.precision import pick_device
from realmctl.pipeline import resolve


class LoadedIndex:
    """The vectors of all blocks, searched by inner product. Embeddings are searched exactly, block by block.

    Examples:
        >>> index, retriever = realmctl.load_index("artifacts/index"), realmctl.load_retriever("artifacts/retriever")
        >>> scores, rows = index.search(retriever.encode_queries(["Who wrote it?"]), k=5)
    """

    def __init__(self, artifact: Artifact, index: Index) -> None:
        self.artifact, self._index = artifact, index

    @classmethod
    def open(cls, path: Path | str | Artifact, *, device: str = "auto") -> LoadedIndex:
        """Open an index, the index of a model, or embeddings.

        Args:
            path: a series, a version or an open artifact.
            device: where exact search runs: auto, cpu or cuda:N. A graph is searched on the CPU.

        Raises:
            InputError: a file is missing or damaged.
            MismatchError: the artifact is of another kind.
        """
        artifact, place = resolve(path, ("index", "embeddings")), str(pick_device(device))
        if artifact.kind == "embeddings":
            return cls(artifact, ExactIndex(open_vectors(artifact.file("embeddings.npy")), place))
        return cls(artifact, open_index(artifact.path, place))

    @property
    def dimension(self) -> int:
        """Width D of the vectors."""
        return self._index.dimension

    def __len__(self) -> int:
        return self._index.count

    def search(self, queries_BD: Vectors, k: int = 5) -> tuple[Scores, RowIds]:
        """Return scores float32 [B, k] and rows int64 [B, k] of the k best vectors for each query, best first.

        k is at most the number of vectors.

        Args:
            queries_BD: float vectors [B, D], such as `LoadedRetriever.encode_queries` returns.
            k: rows wanted for each query.

        Raises:
            ConfigError: k is below 1.
            InputError: a query is not finite.
            MismatchError: the queries are of another dimension.
        """
        return self._index.search(queries_BD, k)

    def vectors(self, rows: RowIds) -> NDArray[np.float32]:
        """Return the vectors of rows: rows of any shape [...] give float32 [..., D]."""
        return self._index.vectors(rows)

    def __repr__(self) -> str:
        return f"<{self.artifact.kind} of {len(self)} vectors of width {self.dimension} at {self.artifact.path}>"
