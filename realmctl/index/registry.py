"""The types of index by name. Nothing heavy is imported here, so that the command line can list the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.registry import Registry

if TYPE_CHECKING:
    from realmctl.index.store import IndexType

SHARDED = "hnsw-shards"

INDEX_TYPES: Registry[IndexType] = Registry(
    "index type",
    base="realmctl.index.store:IndexType",
    group="realmctl.indexes",
    built_in={
        "hnsw": "realmctl.index.index_types:HnswIndexType",
        "exact": "realmctl.index.index_types:ExactIndexType",
    },
    internal={SHARDED: "realmctl.index.hnsw_shards:ShardedHnswType"},  # `--type hnsw --shards N`
)
