"""The index types of realmctl: exact search, and an hnsw graph with a required recall."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from realmctl.artifacts.hashing import digest_file
from realmctl.errors import InputError, QualityError
from realmctl.index.canaries import check_canaries, choose_canaries, worse_canaries
from realmctl.index.exact import ExactIndex
from realmctl.index.hnsw import HnswIndex, build_graph, load_graph, save_graph
from realmctl.index.hnsw_file import GraphShape
from realmctl.index.merged import MergedIndex, bounds
from realmctl.index.protocol import Index, RowIds, Scores, Vectors
from realmctl.index.recall import Recall, RecallSample
from realmctl.index.store import IndexDescription, IndexType, write_description
from realmctl.log import say

if TYPE_CHECKING:
    from realmctl.index.build import IndexOptions

GRAPH_FILE = "hnsw.bin"
RANGES = {
    "m": (2, 512),
    "ef_construction": (1, 2**31 - 1),
    "ef": (1, 2**31 - 1),
    "threads": (1, 2**31 - 1),
    "seed": (0, 2**64),
    "max_level": (0, 2**31 - 1),
    "entry_point": (0, 2**31 - 1),
}
"""{field of an hnsw index's description: (smallest, largest value)}."""
AUTO_EF = (64, 128, 256, 512, 1024)


class Beam(Protocol):
    """An index over graphs whose beam can be set."""

    ef: int

    def search_graph(self, queries_BD: Vectors, k: int, /) -> tuple[Scores, RowIds]: ...


class ExactIndexType(IndexType):
    """Exact search: every vector is scored. Only the vectors are stored."""

    def build(self, folder: Path, vectors: Vectors, options: IndexOptions, device: str) -> Mapping[str, Any]:
        count, dimension = vectors.shape
        write_description(folder, IndexDescription("exact", dimension, count))
        return {"recall": 1.0}

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        return ExactIndex(vectors, device)

    def open_part(
        self, folder: Path, description: IndexDescription, vectors: Vectors, device: str, part: int, parts: int
    ) -> MergedIndex:
        first, stop = bounds(len(vectors), parts)[part]
        own: list[tuple[int, Index]] = [(first, ExactIndex(vectors[first:stop], device))] if stop > first else []
        return MergedIndex(own, vectors)


@dataclass(frozen=True)
class HnswIndexDescription(IndexDescription):
    """Content of `index.json` for an hnsw index: what the graph file does not record, and the hash of that file."""

    m: int = 16
    ef_construction: int = 200
    ef: int = 64
    seed: int = 0
    threads: int = 1
    max_level: int = 0
    entry_point: int = 0
    sha256: str = ""
    canaries: list[list[int]] = field(default_factory=list)
    """See `realmctl.index.canaries`. Indexes of older versions have none."""
    seal: str = ""
    """SHA-256 of the other fields. Indexes of older versions have none."""

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
        sealed = bool(self.seal or self.canaries)
        if sealed and self.seal != self.computed_seal():
            raise ValueError("its content does not have the hash in its seal")

    def computed_seal(self) -> str:
        """Return the SHA-256 of all fields but the seal."""
        fields = {name: value for name, value in asdict(self).items() if name != "seal"}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class HnswIndexType(IndexType):
    """hnswlib's graph beside the vectors.

    It is built, saved, loaded again and measured against exact search. An index below the recall floor is not described.
    """

    description = HnswIndexDescription

    def build(self, folder: Path, vectors: Vectors, options: IndexOptions, device: str) -> Mapping[str, Any]:
        path = folder / GRAPH_FILE
        graph = build_graph(vectors, options.m, options.ef_construction, options.seed, options.threads)
        shape = save_graph(graph, path)
        index = HnswIndex(load_graph(path, shape, vectors), vectors, ef=AUTO_EF[0])
        recall = reach_recall(index, vectors, options, device)
        described = {**asdict(shape), "ef": index.ef, "seed": options.seed, "threads": options.threads}
        canaries = choose_canaries(index.search_graph, vectors)
        description = HnswIndexDescription(type="hnsw", sha256=digest_file(path), canaries=canaries, **described)
        write_description(folder, replace(description, seal=description.computed_seal()))
        return {"ef": index.ef, **recall.metrics()}

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


def reach_recall(index: Beam, vectors: Vectors, options: IndexOptions, device: str) -> Recall:
    """Set the beam: the one asked for, or the narrowest that reaches the floor. QualityError if none does."""
    recall_sample = RecallSample(
        vectors, k=options.recall_k, sample=options.recall_sample, seed=options.seed, device=device
    )
    for ef in (options.ef,) if options.ef else AUTO_EF:
        index.ef = ef
        recall = recall_sample.measure(index.search_graph)
        say(f"recall@{recall.k} at ef {ef}: {recall}")
        if recall.mean >= options.min_recall:
            return recall
    raise QualityError(
        f"The graph finds only {recall} of the true {recall.k} nearest blocks at ef {ef}, below the floor of "
        f"{options.min_recall:.0%}, so no index was made. Build with more links (--m {2 * options.m} "
        f"--ef-construction {2 * options.ef_construction}), {'leave --ef out, ' if options.ef else ''}or "
        "take --type exact, which misses nothing; --min-recall lowers the floor."
    )
