"""Corpora: files of many formats into documents, and documents into blocks."""
