"""An hnsw index in shards: a graph for each range of rows, built in parallel and searched together.

shard-000/hnsw.bin    the graph of the first range
shard-000/index.json  its description, as of an hnsw index of its own
index.json            the number of shards, and the hashes of their descriptions

The files do not depend on the number of processes that use them: a process opens any of the shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifacts.hashing import digest_file
from realmctl.errors import ConfigError, InputError
from realmctl.execution.shards import map_units, worker_count
from realmctl.index.canaries import choose_canaries
from realmctl.index.hnsw import HnswIndex, build_graph, load_graph, save_graph
from realmctl.index.hnsw_file import GraphShape
from realmctl.index.index_types import AUTO_EF, GRAPH_FILE, HnswIndexDescription, HnswIndexType, reach_recall
from realmctl.index.merged import MergedIndex, bounds
from realmctl.index.protocol import Index, Vectors
from realmctl.index.store import DESCRIPTION_FILE, IndexDescription, IndexType, read_description, write_description
from realmctl.index.vectors import VECTORS_FILE, open_vectors

if TYPE_CHECKING:
    from realmctl.index.build import IndexOptions

ROWS_WORTH_A_PROCESS = 20_000
"""Rows from which a further process for the build saves more time than its start takes."""
MAX_SHARDS = 1000


@dataclass(frozen=True)
class ShardedHnswDescription(IndexDescription):
    """Content of `index.json` of an hnsw index in shards."""

    shards: int = 2
    sha256: list[str] = field(default_factory=list)
    """Hash of the description of each shard."""

    def check(self) -> None:
        super().check()
        if not 2 <= self.shards <= min(MAX_SHARDS, self.count) or len(self.sha256) != self.shards:
            raise ValueError(f"shards is {self.shards} with {len(self.sha256)} hashes, for {self.count} vectors")


class HnswShards(MergedIndex):
    """The opened shards. `ef` is the width of the search beam of each."""

    def __init__(self, parts: Sequence[tuple[int, HnswIndex]], vectors: Vectors) -> None:
        super().__init__(parts, vectors)
        self.graphs = [graph for _, graph in parts]

    @property
    def ef(self) -> int:
        return self.graphs[0].ef

    @ef.setter
    def ef(self, ef: int) -> None:
        for graph in self.graphs:
            graph.ef = ef

    search_graph = MergedIndex.search
    """A shard that reaches too few rows is searched exactly, so the answers always are whole."""


class ShardedHnswType(IndexType):
    """Graphs over ranges of the rows. The recall floor holds for the merged answers."""

    description = ShardedHnswDescription

    def build(self, folder: Path, vectors: Vectors, options: IndexOptions, device: str) -> Mapping[str, Any]:
        ranges = _ranges(len(vectors), options.shards)
        settings = (options.m, options.ef_construction, options.seed, options.threads)
        units = [(str(folder), number, first, stop, settings) for number, (first, stop) in enumerate(ranges)]
        useful = max(1, len(vectors) // ROWS_WORTH_A_PROCESS)
        shapes = [GraphShape(*each) for each in map_units(build_shard, units, min(len(units), useful, worker_count(0)))]
        parts = [
            (
                first,
                HnswIndex(
                    load_graph(_shard(folder, number) / GRAPH_FILE, shape, vectors[first:stop]),
                    vectors[first:stop],
                    AUTO_EF[0],
                ),
            )
            for number, ((first, stop), shape) in enumerate(zip(ranges, shapes, strict=True))
        ]
        index = HnswShards(parts, vectors)
        recall = reach_recall(index, vectors, options, device)
        hashes = []
        for number, ((first, graph), shape) in enumerate(zip(parts, shapes, strict=True)):
            shard = _shard(folder, number)
            described = {**asdict(shape), "ef": graph.ef, "seed": options.seed, "threads": options.threads}
            canaries = choose_canaries(graph.search_graph, vectors[first : first + graph.count])
            description = HnswIndexDescription(
                type="hnsw", sha256=digest_file(shard / GRAPH_FILE), canaries=canaries, **described
            )
            write_description(shard, replace(description, seal=description.computed_seal()))
            hashes.append(digest_file(shard / DESCRIPTION_FILE))
        count, dimension = vectors.shape
        write_description(folder, ShardedHnswDescription("hnsw-shards", dimension, count, "ip", len(ranges), hashes))
        return {"ef": index.ef, **recall.metrics()}

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        return self.open_part(folder, description, vectors, device, 0, 1)

    def open_part(
        self, folder: Path, description: IndexDescription, vectors: Vectors, device: str, part: int, parts: int
    ) -> MergedIndex:
        assert isinstance(description, ShardedHnswDescription)
        ranges = bounds(description.count, description.shards)
        opened = []
        for number in range(part, description.shards, parts):
            shard, (first, stop) = _shard(folder, number), ranges[number]
            path = shard / DESCRIPTION_FILE
            if not path.is_file() or digest_file(path) != description.sha256[number]:
                raise InputError(
                    f"{path} is missing, damaged or of another index (its SHA-256 is not the one in {folder / DESCRIPTION_FILE}). "
                    "Build the index again."
                )
            described = read_description(shard)
            graph = HnswIndexType().open(shard, described, vectors[first:stop], device)
            opened.append((first, graph))
        return MergedIndex(opened, vectors)


def build_shard(unit: tuple[str, int, int, int, tuple[int, int, int, int]]) -> list[int]:
    """Build and save the graph of a range of rows. Returns the fields of its `GraphShape`."""
    folder, number, first, stop, (m, ef_construction, seed, threads) = unit
    rows = open_vectors(Path(folder) / VECTORS_FILE)[first:stop]
    shard = _shard(Path(folder), number)
    shard.mkdir(exist_ok=True)
    shape = save_graph(build_graph(rows, m, ef_construction, seed, threads), shard / GRAPH_FILE)
    return list(asdict(shape).values())


def _shard(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:03d}"


def _ranges(count: int, shards: int) -> list[tuple[int, int]]:
    if shards > min(count, MAX_SHARDS):
        raise ConfigError(f"--shards {shards}: {count} vectors can have at most {min(count, MAX_SHARDS)} shards.")
    return bounds(count, shards)
