"""What makes `WordPiece.packed` fast: ids remembered by what stands between two spaces, as bytes.

Text of ASCII and common typography is cut by the greedy rule here, because in it BERT's normalizer changes
nothing but the case. The rest is asked of the library, once.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from tokenizers import Tokenizer

CACHED = 2**20
MAX_WORD_CHARS = 100
MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~–—‘’“”…")
SIMPLE = re.compile(r"[ -~–—‘’“”…]*+")  # text in which BERT's normalizer changes nothing but the case
SIMPLE_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~–—‘’“”…]")


class Chunks(dict[str, bytes]):
    """What stands between two spaces -> its ids, as the library cuts it: worked out when first asked for, all
    forgotten when there are too many.
    """

    def __init__(self, library: Tokenizer, rule: GreedyRule | None, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._library, self._rule, self._dtype = library, rule, dtype
        self._lowercase = rule is not None and rule.lowercase

    def packed(self, text: str) -> bytes:
        """The ids of a text. BERT sets marks apart; done here for the two commonest, fewer chunks are new."""
        if self._rule is not None:
            text = text.replace(",", " , ").replace(".", " . ")
        return b"".join(map(self.__getitem__, text.split(" ")))

    def __missing__(self, chunk: str) -> bytes:
        packed = self._work_out(chunk)
        if len(chunk) <= MAX_WORD_CHARS:
            if len(self) >= CACHED:
                self.clear()
            self[chunk] = packed
        return packed

    def _work_out(self, chunk: str) -> bytes:
        if self._rule is not None:
            if (chunk.isalnum() and chunk.isascii()) or chunk in MARKS:
                return self._rule.cut(chunk.lower() if self._lowercase else chunk)
            if SIMPLE.fullmatch(chunk):
                return b"".join(map(self.__getitem__, SIMPLE_WORD.findall(chunk)))
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


class GreedyRule:
    """WordPiece's longest-match-first rule for one word of letters and digits, or one punctuation mark."""

    def __init__(self, setup: dict[str, Any], dtype: np.dtype[Any]) -> None:
        vocabulary = setup["model"]["vocab"]
        self._first: dict[str, bytes] = {
            piece: number.to_bytes(dtype.itemsize, sys.byteorder) for piece, number in vocabulary.items()
        }
        self._further = {piece[2:]: packed for piece, packed in self._first.items() if piece.startswith("##")}
        self._unknown = self._first[setup["model"]["unk_token"]]
        self._longest = max(map(len, vocabulary))
        self.lowercase: bool = setup["normalizer"]["lowercase"]

    def cut(self, word: str) -> bytes:
        """Its ids, or the unknown wordpiece's."""
        if len(word) > MAX_WORD_CHARS:
            return self._unknown
        found, start, pieces = b"", 0, self._first
        while start < len(word):
            end = min(len(word), start + self._longest)
            while (piece := pieces.get(word[start:end])) is None:
                end -= 1
                if end == start:
                    return self._unknown
            found += piece
            start, pieces = end, self._further
        return found
