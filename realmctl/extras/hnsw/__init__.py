"""Approximate search in a graph, by hnswlib (pip extra `hnsw`). It is compiled where it is installed, so it needs a C++ compiler."""

OFFERS = {
    "realmctl.indexes": {"hnsw": "realmctl.extras.hnsw.hnsw:HnswIndexType"},
    "realmctl.options.build-index": {"hnsw": "realmctl.extras.hnsw.options:HnswOptions"},
}
