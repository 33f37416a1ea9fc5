"""From queries to ranked blocks: dense search, BM25, fused rankings, and the candidates of pre-training."""
