"""Approximate search with hnswlib, with guards against its known faults.

hnswlib does not report write errors, forgets `ef` on load, does not record dimension or metric, accepts NaN, and crashes on
a damaged file. So the size of a saved file is checked, a file is checked before it is loaded (hnsw_file.py), and `ef` is
set after that. A graph never changes while it is searched.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifacts.hashing import digest_file, seal_of
from realmctl.errors import InputError, ResourceError
from realmctl.extras.hnsw.canaries import check_canaries, choose_canaries, worse_canaries
from realmctl.extras.hnsw.hnsw_file import GraphShape, check_file, read_entry
from realmctl.extras.hnsw.options import HnswOptions, hnswlib
from realmctl.index.index_type import IndexDescription, IndexType, write_index_description
from realmctl.index.protocol import Index, RowIds, Scores, Vectors
from realmctl.index.rescored import UNREACHED, RescoredIndex, reach_recall
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import chunks
from realmctl.log import progress

GRAPH_FILE = "hnsw.bin"
RANGES = {
    "m": (2, 512),
    "ef_construction": (1, 2**31 - 1),
    "ef": (1, 2**31 - 1),
    "build_threads": (1, 2**31 - 1),
    "seed": (0, 2**64),
    "max_level": (0, 2**31 - 1),
    "entry_point": (0, 2**31 - 1),
}
"""{field of an hnsw index's description: (smallest, largest value)}."""
AUTO_EF = (64, 128, 256, 512, 1024)
VECTORS_AT_ONCE = 256
"""Insertions in one call: well under half a second. hnswlib reacts to Ctrl-C only between calls."""

Graph = Any
"""An `hnswlib.Index`: the package has no types."""


class HnswIndex(RescoredIndex):
    """A graph over frozen vectors (`realmctl.index.protocol.Index`). `ef` is the width of the search beam.

    Searches use as many threads as torch. The results do not depend on the number.
    """

    def __init__(self, graph: Graph, vectors: Vectors, ef: int) -> None:
        super().__init__(vectors)
        self._graph = graph
        self.ef = ef

    @property
    def ef(self) -> int:
        return int(self._graph.ef)

    @ef.setter
    def ef(self, ef: int) -> None:
        self._graph.set_ef(ef)
        if self._graph.ef != ef:
            raise ResourceError(f"hnswlib did not take ef = {ef} (it says {self._graph.ef}); reinstall hnswlib 0.8.0.")

    def find(self, queries_BD: NDArray[np.float32], k: int) -> tuple[Scores, RowIds]:
        """Return what the graph finds; hnswlib widens a beam narrower than k to k, and gives 1 - score.

        One query with too few results fails a whole call; then each is asked alone.
        """
        try:
            labels, distances = self._graph.knn_query(queries_BD, k, num_threads=torch.get_num_threads())
            return 1 - distances, labels.astype(np.int64)
        except RuntimeError:
            if len(queries_BD) == 1:
                return np.empty((1, k), np.float32), np.full((1, k), UNREACHED, np.int64)
        found = [self.find(query[None], k) for query in queries_BD]
        return np.concatenate([scores for scores, _ in found]), np.concatenate([ids for _, ids in found])


@dataclass(frozen=True)
class HnswIndexDescription(IndexDescription):
    """Content of `index.json` for an hnsw index: what the graph file does not record, and the hash of that file."""

    m: int = 16
    ef_construction: int = 200
    ef: int = 64
    seed: int = 0
    build_threads: int = 1
    max_level: int = 0
    entry_point: int = 0
    sha256: str = ""
    canaries: list[list[int]] = field(default_factory=list)
    """See `realmctl.extras.hnsw.canaries`."""
    seal: str = ""
    """SHA-256 of the other fields."""

    @property
    def shape(self) -> GraphShape:
        """The numbers that determine the layout of the graph file."""
        return GraphShape(self.count, self.dimension, self.m, self.ef_construction, self.max_level, self.entry_point)

    def check(self) -> None:
        super().check()
        for name, (smallest, largest) in RANGES.items():
            if not smallest <= getattr(self, name) <= largest:
                raise ValueError(f"{name} is {getattr(self, name)!r}")
        if self.entry_point >= self.count:
            raise ValueError(f"entry_point is {self.entry_point} of {self.count} vectors")
        check_canaries(self.canaries, self.count)
        if self.seal != self.computed_seal():
            raise ValueError("its content does not have the hash in its seal")

    def computed_seal(self) -> str:
        """Return the SHA-256 of all fields but the seal."""
        return seal_of(asdict(self))


class HnswIndexType(IndexType):
    """hnswlib's graph beside the vectors.

    It is built, saved, loaded again and measured against exact search.
    """

    description = HnswIndexDescription

    @classmethod
    def in_shards(cls) -> type[IndexType]:
        from realmctl.extras.hnsw.hnsw_shards import ShardedHnswType

        return ShardedHnswType

    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        path = folder / GRAPH_FILE
        own = HnswOptions.of(vars(settings))
        graph = build_graph(vectors, own.m, own.ef_construction, own.seed, own.build_threads)
        shape = save_graph(graph, path)
        index = HnswIndex(load_graph(path, shape, vectors), vectors, ef=AUTO_EF[0])
        recall = reach_recall(index, vectors, settings, device, AUTO_EF)
        describe_graph(folder, index, shape, vectors, settings)
        return {"ef": index.ef, **recall.metrics()}

    def remedy(self, settings: IndexSettings) -> str:
        own = HnswOptions.of(vars(settings))
        links = f"Build with more links (--m {2 * own.m} --ef-construction {2 * own.ef_construction})"
        return f"{links}{', leave --ef out' if settings.ef else ''}, or take --type int8 or exact, which miss next to nothing"

    def size(self, settings: IndexSettings, rows: int, dimension: int) -> int:
        """hnswlib keeps a float32 copy of each vector, 2 m links on the ground level, and a few above it."""
        m = HnswOptions.of(vars(settings)).m
        return rows * (4 * dimension + 4 * (2 * m + 1) + 8 + 4 * m)

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        path = folder / GRAPH_FILE
        assert isinstance(description, HnswIndexDescription)
        if not path.is_file() or digest_file(path) != description.sha256:
            raise InputError(
                f"The graph {path} is missing or damaged (its SHA-256 is not the one in index.json). Build the index again."
            )
        index = HnswIndex(load_graph(path, description.shape, vectors), vectors, description.ef)
        worse = worse_canaries(description.canaries, index.search_graph, vectors)
        if worse:
            raise InputError(
                f"The graph {path} is damaged: {worse} of its {len(description.canaries)} canary queries find worse "
                "neighbours than when it was built. Build the index again."
            )
        return index


def describe_graph(
    folder: Path, index: HnswIndex, shape: GraphShape, vectors: Vectors, settings: IndexSettings
) -> None:
    """Write the `index.json` of a graph that was saved in `folder`."""
    description = HnswIndexDescription(
        type="hnsw",
        **asdict(shape),
        ef=index.ef,
        seed=settings.seed,
        build_threads=HnswOptions.of(vars(settings)).build_threads,
        sha256=digest_file(folder / GRAPH_FILE),
        canaries=choose_canaries(index.search_graph, vectors),
    )
    write_index_description(folder, replace(description, seal=description.computed_seal()))


def build_graph(vectors: Vectors, m: int, ef_construction: int, seed: int, threads: int) -> Graph:
    """Build a graph of the rows. One thread gives the same bytes every time; several threads do not.

    Rows must be finite (`vectors.check_finite`). Raises ResourceError when hnswlib or memory is missing.
    """
    count, dimension = vectors.shape
    graph = hnswlib().Index(space="ip", dim=dimension)
    try:
        # C++'s default engine treats the seeds 0 and 1 as equal.
        graph.init_index(max_elements=count, M=m, ef_construction=ef_construction, random_seed=seed + 1)
    except RuntimeError as error:
        raise ResourceError(
            f"No memory for a graph over {count:,} vectors of dimension {dimension}: {error}. It needs about "
            f"{count * (4 * dimension + 8 * m + 12) / 1e9:.1f} GB; lower --m, or use --type exact, which "
            "needs none."
        ) from None
    with progress(count, "building the graph", "vectors") as bar:
        for start, rows in chunks(vectors, VECTORS_AT_ONCE):
            graph.add_items(rows, np.arange(start, start + len(rows)), num_threads=threads)
            bar.advance(len(rows))
    return graph


def save_graph(graph: Graph, path: Path) -> GraphShape:
    """Write a graph durably and check the size of the file: on a full disk hnswlib reports no error.

    Raises ResourceError when the file is incomplete.
    """
    graph.save_index(str(path))
    expected, found = graph.index_file_size(), path.stat().st_size if path.exists() else 0
    if found != expected:
        raise ResourceError(
            f"Only {found:,} of {expected:,} bytes of the graph {path} were written: the disk is full, or "
            "the folder cannot be written to. Free space and run the same command again."
        )
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    max_level, entry_point = read_entry(path)
    return GraphShape(graph.element_count, graph.dim, graph.M, graph.ef_construction, max_level, entry_point)


def load_graph(path: Path, shape: GraphShape, vectors: Vectors) -> Graph:
    """Load a graph from a file that was first checked against its shape and vectors.

    hnswlib holds the interpreter lock while it reads (about 260 MB/s), so other threads of the process wait meanwhile.
    """
    check_file(path, shape, vectors)
    graph = hnswlib().Index(space="ip", dim=shape.dimension)
    try:
        graph.load_index(str(path), max_elements=shape.count)
    except RuntimeError as error:
        raise ResourceError(
            f"hnswlib cannot load {path}: {error}. The file was checked and is sound, so memory is short."
        ) from None
    return graph
