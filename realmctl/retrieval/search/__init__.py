"""From queries to blocks: embeddings, dense search, BM25, and the candidates of pre-training."""
