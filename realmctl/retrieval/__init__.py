"""Retrieval: from questions to blocks (search) and to answers (answering)."""
