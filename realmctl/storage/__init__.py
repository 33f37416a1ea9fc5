"""Plain files: compressed records with random access, arrays of unknown length, hashes."""
