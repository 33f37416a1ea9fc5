"""What training reads, and in which order: examples, random draws, batches."""
