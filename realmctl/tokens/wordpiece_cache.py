"""The fast paths of BERT's tokenizer: caches from each word between two spaces to what it is encoded as.

`PackedWords` has ids alone. Words of ASCII and common typography are cut there by the greedy rule of WordPiece (google-research/bert,
tokenization.py), because BERT's normalizer changes only their case. The library encodes all other words, once each. `PlacedWords` has
character offsets too, and they all come from the library.
"""

from __future__ import annotations

import re
import sys
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as LibraryTokenizer

from realmctl.tokens.text_pieces import BERT_BORDER, PIECE_CHARS, pieces

CACHED = 2**18
"""Words; about 200 bytes of memory each."""
CACHED_WITH_PLACES = 2**17
MAX_WORD_CHARS = 100
PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~–—‘’“”…")
# a word or mark in which BERT's normalizer changes nothing but the case
SIMPLE_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~–—‘’“”…]")


class PackedWords(dict[str, bytes]):
    """A cache from a word between two spaces to its packed ids. It is emptied when it holds too many words."""

    def __init__(self, library: LibraryTokenizer, rule: GreedyRule, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._library, self._rule, self._dtype = library, rule, dtype
        self._known = rule.whole_words()
        self.clear_cache()

    def clear_cache(self) -> None:
        """Empty the cache, except for words that are one wordpiece."""
        self.clear()
        self.update(self._known)

    def packed(self, text: str) -> bytes:
        """Return the ids of `text` as bytes. A long text is processed in pieces, so that memory stays bounded."""
        if len(text) <= PIECE_CHARS:
            return self._packed_piece(text)
        return b"".join(self._packed_piece(piece) for _, piece in pieces(text, BERT_BORDER))

    def _packed_piece(self, text: str) -> bytes:
        # BERT sets punctuation apart. Doing so here for the two most frequent marks makes more words known.
        text = text.replace(",", " , ").replace(".", " . ")
        return b"".join(map(self.__getitem__, text.split(" ")))

    def __missing__(self, chunk: str) -> bytes:
        packed = self._work_out(chunk)
        if len(chunk) <= MAX_WORD_CHARS:
            if len(self) - len(self._known) >= CACHED:
                self.clear_cache()
            self[chunk] = packed
        return packed

    def _work_out(self, chunk: str) -> bytes:
        if (chunk.isalnum() and chunk.isascii()) or chunk in PUNCTUATION:
            plain = self._rule.plain(chunk)
            return self.get(plain) or self._rule.cut(plain)
        words = SIMPLE_WORD.findall(chunk)
        if "".join(words) == chunk:
            return b"".join(map(self.__getitem__, words))
        return np.array(self._library.encode(chunk, add_special_tokens=False).ids, self._dtype).tobytes()


class PlacedWords(dict[str, tuple[bytes, bytes, int]]):
    """A cache from a word between two spaces to its ids and their offsets in the word, int32 as bytes, and their number."""

    def __init__(self, library: LibraryTokenizer) -> None:
        super().__init__()
        self._library = library

    def encoded(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return ids [n] and character offsets [n, 2] of a text, as the library does."""
        words = text.split(" ")
        ids, offsets, counts = zip(*map(self.__getitem__, words), strict=True)
        begins = np.fromiter(accumulate((len(word) + 1 for word in words[:-1]), initial=0), np.int32, len(words))
        offset_n2 = np.frombuffer(bytearray().join(offsets), np.int32).reshape(-1, 2)
        return np.frombuffer(bytearray().join(ids), np.int32), offset_n2 + np.repeat(begins, counts)[:, None]

    def __missing__(self, word: str) -> tuple[bytes, bytes, int]:
        found = self._library.encode(word, add_special_tokens=False)
        placed = np.array(found.ids, np.int32).tobytes(), np.array(found.offsets, np.int32).tobytes(), len(found.ids)
        if len(word) <= MAX_WORD_CHARS:
            if len(self) >= CACHED_WITH_PLACES:
                self.clear()
            self[word] = placed
        return placed


def is_bert_pipeline(setup: dict[str, Any]) -> bool:
    """Return whether a tokenizer has BERT's normalizer, pre-tokenizer and greedy rule. Only then is the fast path
    valid.
    """
    model = setup["model"]
    greedy = tuple(model.get(name) for name in ("type", "continuing_subword_prefix", "max_input_chars_per_word"))
    return (
        (setup["normalizer"] or {}).get("type") == "BertNormalizer"
        and setup["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and greedy == ("WordPiece", "##", MAX_WORD_CHARS)
    )


class GreedyRule:
    """WordPiece's longest-match-first rule, for one word of letters and digits or one punctuation mark."""

    def __init__(self, setup: dict[str, Any], dtype: np.dtype[Any]) -> None:
        vocabulary = setup["model"]["vocab"]
        self._first: dict[str, bytes] = {
            piece: number.to_bytes(dtype.itemsize, sys.byteorder) for piece, number in vocabulary.items()
        }
        self._further = {piece[2:]: packed for piece, packed in self._first.items() if piece.startswith("##")}
        self._unknown = self._first[setup["model"]["unk_token"]]
        self._longest = max(map(len, vocabulary))
        self._lowercase: bool = setup["normalizer"]["lowercase"]

    def plain(self, word: str) -> str:
        """Return the word in the case of the vocabulary."""
        return word.lower() if self._lowercase else word

    def whole_words(self) -> dict[str, bytes]:
        """Return the words that are one wordpiece. They need no rule."""
        return {
            word: packed
            for word, packed in self._first.items()
            if word.isalnum() and word.isascii() and self.plain(word) == word and len(word) <= MAX_WORD_CHARS
        }

    def cut(self, word: str) -> bytes:
        """Return the packed ids of a word, or the packed id of [UNK]."""
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
