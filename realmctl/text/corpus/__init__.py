"""Corpora: read files of many formats as documents, and cut documents into blocks."""
