"""What `realmctl export` writes: models for transformers and the hub, passages, vectors and rankings of other tools."""
