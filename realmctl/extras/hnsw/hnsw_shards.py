"""An hnsw index in shards: a graph for each range of rows, built in parallel and searched together.

shard-000/hnsw.bin    the graph of the first range
shard-000/index.json  its description, as of an hnsw index of its own
index.json            the number of shards, and the hashes of their descriptions

The files do not depend on the number of processes that use them: a process opens any of the shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from realmctl.artifacts.hashing import digest_file
from realmctl.errors import ConfigError, InputError
from realmctl.execution.shards import map_units, worker_count
from realmctl.extras.hnsw.hnsw import (
    AUTO_EF,
    GRAPH_FILE,
    HnswIndex,
    HnswIndexType,
    build_graph,
    describe_graph,
    load_graph,
    save_graph,
)
from realmctl.extras.hnsw.hnsw_file import GraphShape
from realmctl.extras.hnsw.options import HnswOptions
from realmctl.index.index_type import (
    DESCRIPTION_FILE,
    SHARDS,
    IndexDescription,
    IndexType,
    read_index_description,
    write_index_description,
)
from realmctl.index.merged import MergedIndex, bounds
from realmctl.index.protocol import Index, Vectors
from realmctl.index.rescored import reach_recall
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import VECTORS_FILE, open_vectors

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

    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        count, dimension = vectors.shape
        if settings.shards > min(count, MAX_SHARDS):
            raise ConfigError(
                f"--shards {settings.shards}: {count} vectors can have at most {min(count, MAX_SHARDS)} shards."
            )
        units = [(folder, number, own, settings) for number, own in enumerate(bounds(count, settings.shards))]
        useful = max(1, count // ROWS_WORTH_A_PROCESS)
        shapes = list(map_units(build_shard, units, min(len(units), useful, worker_count(0))))
        parts = []
        for (_, number, (first, stop), _), shape in zip(units, shapes, strict=True):
            rows = vectors[first:stop]
            graph = load_graph(_shard(folder, number) / GRAPH_FILE, shape, rows)
            parts.append((first, HnswIndex(graph, rows, AUTO_EF[0])))
        index = HnswShards(parts, vectors)
        recall = reach_recall(index, vectors, settings, device, AUTO_EF)
        hashes = []
        for number, ((first, part), shape) in enumerate(zip(parts, shapes, strict=True)):
            shard = _shard(folder, number)
            describe_graph(shard, part, shape, vectors[first : first + part.count], settings)
            hashes.append(digest_file(shard / DESCRIPTION_FILE))
        write_index_description(
            folder, ShardedHnswDescription("hnsw" + SHARDS, dimension, count, "ip", len(units), hashes)
        )
        return {"ef": index.ef, **recall.metrics()}

    remedy, size = HnswIndexType.remedy, HnswIndexType.size

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
            graph = HnswIndexType().open(shard, read_index_description(shard), vectors[first:stop], device)
            opened.append((first, graph))
        return MergedIndex(opened, vectors)


def build_shard(unit: tuple[Path, int, tuple[int, int], IndexSettings]) -> GraphShape:
    """Build and save the graph of a range of rows: (folder of the index, number of the shard, first and last row, settings)."""
    folder, number, (first, stop), settings = unit
    rows = open_vectors(folder / VECTORS_FILE)[first:stop]
    shard = _shard(folder, number)
    shard.mkdir(exist_ok=True)
    own = HnswOptions.of(vars(settings))
    graph = build_graph(rows, own.m, own.ef_construction, own.seed, own.build_threads)
    return save_graph(graph, shard / GRAPH_FILE)


def _shard(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:03d}"
