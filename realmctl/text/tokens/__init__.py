"""Wordpieces (BERT's tokenizer) and sentence boundaries."""
