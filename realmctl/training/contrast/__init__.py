"""Training of a retriever by contrast within a batch: the inverse cloze task, and recurring spans (Spider)."""
