"""Wordpieces: BERT's tokenizer, its cache and its training."""
