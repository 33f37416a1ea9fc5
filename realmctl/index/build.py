"""Build an index from a folder with `vectors.npy`. `build-index` and the index refresh both call this.

The vectors are checked first, then the type of index builds its files. An index below the required recall is refused before
it can be searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from realmctl.errors import ConfigError, QualityError
from realmctl.index.protocol import Vectors
from realmctl.index.recall import Recall, RecallSample
from realmctl.index.registry import INDEX_TYPES, SHARDED
from realmctl.index.store import DESCRIPTION_FILE, open_index
from realmctl.index.vectors import VECTORS_FILE, check_finite, open_vectors
from realmctl.log import say


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """How to build an index: the settings of `build-index`, and of every index refresh.

    type: name of a type of index (`exact`, `hnsw` or a plug-in's).
    m, ef_construction, threads, seed: of an hnsw graph; with more than one thread each build has other bytes.
    shards: graphs of an hnsw index, each over a range of the rows.
    ef: width of the search beam, None for the narrowest of 64 to 1024 that reaches `min_recall`.
    recall_k, recall_sample, min_recall: neighbours, queries and floor of the measured recall.
    """

    type: str = "hnsw"
    m: int = 16
    ef_construction: int = 200
    ef: int | None = None
    threads: int = 1
    shards: int = 1
    seed: int = 0
    recall_k: int = 8
    recall_sample: int = 1000
    min_recall: float = 0.95

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Take the options from the settings of an index's stage. Options that are not among them have their defaults."""
        return cls(**{field.name: settings[field.name] for field in fields(cls) if field.name in settings})

    def recorded(self) -> dict[str, Any]:
        """Return the options as a recipe records them. One shard is left out, as in the recipes of older versions."""
        return {name: value for name, value in vars(self).items() if (name, value) != ("shards", 1)}

    def check(self) -> None:
        """Raise ConfigError for options that cannot work."""
        least = {"ef_construction": 1, "threads": 1, "shards": 1, "seed": 0, "recall_k": 1, "recall_sample": 1}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise ConfigError(f"{name} is {getattr(self, name)}; the least is {smallest}.")
        if self.shards > 1 and self.type != "hnsw":
            raise ConfigError(
                f"--shards {self.shards}: only an hnsw index is saved in shards. An exact index is divided when it is opened "
                "(--index-shards). Leave --shards out."
            )
        if not 2 <= self.m <= 512:
            raise ConfigError(f"m is {self.m}; a graph has 2 to 512 links a vector (16 suits most).")
        if self.ef is not None and self.ef < 1:
            raise ConfigError(f"ef is {self.ef}; the least is 1, and leaving it out finds one that reaches min_recall.")
        if not 0 <= self.min_recall <= 1:
            raise ConfigError(f"min_recall is {self.min_recall}; it is a share, from 0 to 1.")


def build(folder: Path, options: IndexOptions, device: str = "cpu") -> dict[str, Any]:
    """Build the index of `folder/vectors.npy` in that folder, and return its metrics. Exact search runs on `device`.

    Raises:
        InputError: a vector is not finite.
        QualityError: the recall is below `min_recall`. The folder then has no index.json.
        ResourceError: hnswlib, memory or disk space is missing.
    """
    options.check()
    index_type = INDEX_TYPES.load(SHARDED if options.shards > 1 else options.type)()
    vectors = open_vectors(folder / VECTORS_FILE)
    check_finite(vectors, str(folder / VECTORS_FILE))
    count, dimension = vectors.shape
    metrics = {"rows": count, "dimension": dimension, **index_type.build(folder, vectors, options, device)}
    if "recall" not in metrics:
        metrics |= _measured(folder, vectors, options, device).metrics()
    return metrics


def _measured(folder: Path, vectors: Vectors, options: IndexOptions, device: str) -> Recall:
    """Return the recall of the finished index. Below `min_recall`, remove the description and raise QualityError."""
    sample = RecallSample(vectors, k=options.recall_k, sample=options.recall_sample, seed=options.seed, device=device)
    recall = sample.measure(open_index(folder, device).search)
    say(f"recall@{recall.k} of the {options.type} index: {recall}")
    if recall.mean < options.min_recall:
        (folder / DESCRIPTION_FILE).unlink()
        raise QualityError(
            f"The {options.type} index finds only {recall} of the true {recall.k} nearest blocks, below the floor of "
            f"{options.min_recall:.0%}, so no index was made. Use --type hnsw or --type exact, or lower --min-recall."
        )
    return recall
