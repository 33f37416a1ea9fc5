"""The formats of a corpus: each is a reader that yields what it finds in a file."""
