"""Encoders of other projects as retrievers: sentence-transformers, Contriever, DPR and plain BERT folders."""
