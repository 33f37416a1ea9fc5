"""The towers of a retriever: what they read, how they pool, and what follows."""
