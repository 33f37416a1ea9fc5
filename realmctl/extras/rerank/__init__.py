"""Models that read a question and a text together: cross-encoders, and REALM's own readers, as rerankers."""

OFFERS = {
    "realmctl.rerankers": {
        "cross-encoder": "realmctl.extras.rerank.cross_encoder:CrossEncoder",
        "qa-model": "realmctl.extras.rerank.readers:QaReader",
        "model": "realmctl.extras.rerank.readers:ModelReader",
    },
}
