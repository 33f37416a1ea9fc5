"""Plain files: durable writes, safe reads, compressed records with random access, growing arrays, hashes."""
