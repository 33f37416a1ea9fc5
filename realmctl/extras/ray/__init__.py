"""Chunk, tag and embed on a cluster, by Ray."""

OFFERS: dict[str, dict[str, str]] = {"realmctl.executors": {"ray": "realmctl.extras.ray.ray_workers:Ray"}}
