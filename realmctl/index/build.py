"""From a folder with `vectors.npy` to a whole index: what `build-index` and the refresh daemon both call.

Order for hnsw: check the vectors, insert, save, load what was saved, measure that against exact search. An
index that misses its recall is refused before anybody can search it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from realmctl.errors import ConfigError, QualityError
from realmctl.index.hnsw import HnswIndex, build_graph, load_graph, save_graph
from realmctl.index.protocol import Vectors
from realmctl.index.recall import Recall, RecallSample
from realmctl.index.store import GRAPH_FILE, Description, HnswDescription, IndexType, write_description
from realmctl.index.vectors import VECTORS_FILE, check_finite, open_vectors
from realmctl.log import say
from realmctl.storage.hashing import digest_file

AUTO_EF = (64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class IndexOptions:
    """How to build an index: the settings of `build-index`, and what a refresh builds its indexes by.

    m, ef_construction, threads, seed: of the graph (more threads make other bytes at each build). ef: width
    of the search beam, None for the smallest of 64 to 1024 that reaches `min_recall`. recall_k,
    recall_sample, min_recall: the gate.
    """

    type: IndexType = "hnsw"
    m: int = 16
    ef_construction: int = 200
    ef: int | None = None
    threads: int = 1
    seed: int = 0
    recall_k: int = 8
    recall_sample: int = 1000
    min_recall: float = 0.95

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The options among the settings of an index's stage; what they do not name has its default."""
        return cls(**{field.name: settings[field.name] for field in fields(cls) if field.name in settings})

    def check(self) -> None:
        """Raise ConfigError for options that cannot work."""
        least = {"ef_construction": 1, "threads": 1, "seed": 0, "recall_k": 1, "recall_sample": 1}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise ConfigError(f"{name} is {getattr(self, name)}; the least is {smallest}.")
        if not 2 <= self.m <= 512:
            raise ConfigError(f"m is {self.m}; a graph has 2 to 512 links a vector (16 suits most).")
        if self.ef is not None and self.ef < 1:
            raise ConfigError(f"ef is {self.ef}; the least is 1, and leaving it out finds one that reaches min_recall.")
        if not 0 <= self.min_recall <= 1:
            raise ConfigError(f"min_recall is {self.min_recall}; it is a share, from 0 to 1.")


def build(folder: Path, options: IndexOptions, device: str = "cpu") -> dict[str, Any]:
    """Make the index over `folder/vectors.npy` in that folder; returns its metrics. Exact search on `device`.

    Raises InputError for vectors that are not finite, QualityError below `min_recall` (the folder is then no
    index), ResourceError without hnswlib, memory or disk.
    """
    options.check()
    vectors = open_vectors(folder / VECTORS_FILE)
    check_finite(vectors, str(folder / VECTORS_FILE))
    count, dimension = vectors.shape
    if options.type == "exact":
        write_description(folder, Description("exact", dimension, count))
        return {"rows": count, "dimension": dimension, "recall": 1.0}
    return _build_hnsw(folder, vectors, options, device)


def _build_hnsw(folder: Path, vectors: Vectors, options: IndexOptions, device: str) -> dict[str, Any]:
    path = folder / GRAPH_FILE
    shape = save_graph(build_graph(vectors, options.m, options.ef_construction, options.seed, options.threads), path)
    index = HnswIndex(load_graph(path, shape, vectors), vectors, ef=AUTO_EF[0])
    recall = _reach_recall(index, vectors, options, device)
    described = {**asdict(shape), "ef": index.ef, "seed": options.seed, "threads": options.threads}
    description = HnswDescription(type="hnsw", sha256=digest_file(path), **described)
    write_description(folder, description)
    return {
        "rows": index.count,
        "dimension": index.dimension,
        "ef": index.ef,
        "recall": recall.mean,
        "recall_low": recall.low,
        "recall_high": recall.high,
        "recall_k": recall.k,
        "recall_queries": recall.queries,
    }


def _reach_recall(index: HnswIndex, vectors: Vectors, options: IndexOptions, device: str) -> Recall:
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
