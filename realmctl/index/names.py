"""The types of index by name. Nothing heavy is imported here, so that the command line can list the names."""

from __future__ import annotations

from realmctl.registry import Registry

SHARDED = "hnsw-shards"

INDEX_TYPES = Registry(
    "index type",
    group="realmctl.indexes",
    built_in={
        "hnsw": "realmctl.index.hnsw:HnswIndexType",
        "exact": "realmctl.index.exact:ExactIndexType",
        "int8": "realmctl.index.int8:Int8IndexType",
        "faiss": "realmctl.index.faiss:FaissIndexType",
    },
    internal={SHARDED: "realmctl.index.hnsw_shards:ShardedHnswType"},  # `--type hnsw --shards N`
)
