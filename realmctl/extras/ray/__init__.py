"""Chunk, tag and embed on a cluster, by Ray."""

OFFERS: dict[str, dict[str, str]] = {}
