"""Indexes with trained codes, by faiss."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.indexes": {
        "faiss": "realmctl.extras.faiss.faiss_index:FaissIndexType",
    },
}
