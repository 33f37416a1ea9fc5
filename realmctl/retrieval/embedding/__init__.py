"""Blocks into vectors: embedding, the files of embeddings, and the vectors that a new version reuses."""
