"""What makes `WordPiece.packed` fast: ids remembered by word and by what stands between two spaces, as bytes.

Chunks of ASCII and common typography are cut by the greedy rule here, because for them BERT's normalizer
changes nothing but the case. All others are asked of the library, once.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from tokenizers import Tokenizer

CACHED = 2**20
MAX_WORD_CHARS = 100
SIMPLE = re.compile(r"[ -~–—‘’“”…]*+")  # text in which BERT's normalizer changes nothing but the case
SIMPLE_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~–—‘’“”…]")


class Remembered(dict[str, bytes]):
    """String -> ids as bytes: worked out when first asked for, all forgotten when there are too many."""

    def work_out(self, key: str) -> bytes:
        raise TypeError(f"{type(self).__name__} works out nothing")

    def __missing__(self, key: str) -> bytes:
        packed = self.work_out(key)
        if len(key) <= MAX_WORD_CHARS:
            if len(self) >= CACHED:
                self.clear()
            self[key] = packed
        return packed


class Chunks(Remembered):
    """What stands between two spaces, as the library cuts it."""

    def __init__(self, library: Tokenizer, words: Words | None, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._library, self._words, self._dtype = library, words, dtype
        self._lowercase = words is not None and words.lowercase

    def work_out(self, chunk: str) -> bytes:
        if self._words is not None:
            if chunk.isascii() and chunk.isalnum():
                return self._words[chunk.lower() if self._lowercase else chunk]
            if SIMPLE.fullmatch(chunk):
                return b"".join(
                    map(
                        self._words.__getitem__,
                        SIMPLE_WORD.findall(chunk.lower() if self._lowercase else chunk),
                    )
                )
        return np.array(self._library.encode(chunk, add_special_tokens=False).ids, self._dtype).tobytes()


def is_berts(setup: dict[str, Any]) -> bool:
    """Whether BERT's own normalizer, pre-tokenizer and greedy rule are at work, so that their sense for ASCII
    is known.
    """
    model = setup["model"]
    greedy = (model["type"], model["continuing_subword_prefix"], model["max_input_chars_per_word"])
    return (
        (setup["normalizer"] or {}).get("type") == "BertNormalizer"
        and setup["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and greedy == ("WordPiece", "##", MAX_WORD_CHARS)
    )


class Words(Remembered):
    """WordPiece's longest-match-first rule for one word of letters and digits, or one punctuation mark."""

    def __init__(self, setup: dict[str, Any], dtype: np.dtype[Any]) -> None:
        super().__init__()
        vocabulary = setup["model"]["vocab"]
        self._pieces: dict[str, bytes] = {
            piece: number.to_bytes(dtype.itemsize, sys.byteorder) for piece, number in vocabulary.items()
        }
        self._unknown = self._pieces[setup["model"]["unk_token"]]
        self._longest = max(map(len, vocabulary))
        self.lowercase: bool = setup["normalizer"]["lowercase"]

    def work_out(self, word: str) -> bytes:
        found, start, prefix, pieces = b"", 0, "", self._pieces
        if len(word) > MAX_WORD_CHARS:
            return self._unknown
        while start < len(word):
            end = min(len(word), start + self._longest)
            while (piece := pieces.get(prefix + word[start:end])) is None:
                end -= 1
                if end == start:
                    return self._unknown
            found += piece
            start, prefix = end, "##"
        return found
