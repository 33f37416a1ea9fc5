"""The files of a tokenizer's folder."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
"""What is read of a folder, be it one of a whole encoder. One of the first two has the vocabulary."""
UNREAD_VOCABULARIES = ("sentencepiece.bpe.model", "spiece.model", "merges.txt")
"""Vocabularies of other layouts, which transformers turns into tokenizer.json."""
