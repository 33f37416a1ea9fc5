"""Chunk, tag and embed on a cluster, by Ray."""

OFFERS = {
    "realmctl.executors": {
        "ray": "realmctl.extras.ray.ray_workers:Ray",
    },
}
