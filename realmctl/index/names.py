"""The types of index by name. Nothing heavy is imported here, so that the command line can list the names."""

from __future__ import annotations

import importlib
from types import ModuleType

from realmctl.errors import ResourceError
from realmctl.registry import Registry

SHARDED = "hnsw-shards"

INDEX_TYPES = Registry(
    "index type",
    group="realmctl.indexes",
    core={"hnsw": "realmctl.index.hnsw:HnswIndexType", "exact": "realmctl.index.exact:ExactIndexType"},
    internal={SHARDED: "realmctl.index.hnsw_shards:ShardedHnswType"},  # `--type hnsw --shards N`
)


def hnswlib() -> ModuleType:
    """Import hnswlib, of the extra `hnsw`. Raises ResourceError where it cannot be imported: it is compiled on each machine."""
    try:
        return importlib.import_module("hnswlib")
    except ImportError as error:
        raise ResourceError(
            f"An hnsw index needs the package hnswlib, which cannot be imported here ({error}). Install the extra that contains "
            "it: pip install 'realmctl[hnsw]'. It is compiled on your machine, so that needs a C++ compiler, and with "
            "`HNSWLIB_NO_NATIVE=1` before it the build runs on other machines too. `realmctl build-index --type exact` needs neither."
        ) from None
