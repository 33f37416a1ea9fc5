"""Import published REALM checkpoints. Export folders that transformers and sentence-transformers load."""
