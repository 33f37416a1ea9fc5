"""Indexes with trained codes, by faiss."""

OFFERS = {
    "realmctl.indexes": {
        "faiss": "realmctl.extras.faiss.faiss_index:FaissIndexType",
    },
    "realmctl.options.build-index": {
        "faiss": "realmctl.extras.faiss.options:FaissOptions",
    },
}
