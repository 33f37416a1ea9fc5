"""To and from the formats of others: published REALM checkpoints in, transformers and sentence-transformers folders out."""
