"""Words for BM25, whole or without their endings: Snowball's stemmers, by the package PyStemmer (extra `bm25`).

Text comes as wordpieces. Those of a word are put together again, so words are as the tokenizer writes them, without accents for an
uncased BERT. Case does not count, and of Turkish I, ı, İ and i neither do the dots. A word of punctuation alone is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, Writer
from realmctl.artifacts.arrays import open_array
from realmctl.corpus.corpus import TokenIds
from realmctl.corpus.languages import plain_language
from realmctl.errors import ConfigError, InputError, require_package
from realmctl.tokens.tokenizer import Tokenizer

TURKISH = ("tr", "turkish")
SMALL, TURKISH_SMALL = str.maketrans("İ", "i"), str.maketrans("Iİ", "ıi")
"""The small letters that `str.lower` does not know: it writes İ as i and a dot of its own, and I as i in Turkish too, whose stems depend on it."""


_UNREAD = -2
"""In place of the number of a stem that no text has shown."""


def check_stemmer(flag: str, language: str | None) -> None:
    """Raise ResourceError without PyStemmer, ConfigError for a language that it does not know, by name (german) or by code (de)."""
    if language is None:
        return
    require_package("Stemmer", "bm25", flag)
    import Stemmer

    try:
        Stemmer.Stemmer(language)
    except KeyError:
        raise ConfigError(
            f"{flag} {language}: there is no such stemmer. The stemmers are {', '.join(Stemmer.algorithms())}."
        ) from None


def stemmer_of(language: str) -> str | None:
    """Return what `check_stemmer` takes for a language of blocks, such as de; None where Snowball has no stemmer of it."""
    for code in (language, plain_language(language)):
        with contextlib.suppress(ConfigError):
            check_stemmer("--bm25-stemmer", code)
            return code
    return None


class Stems:
    """Numbers the stems of the words that it has read.

    Args:
        language: Name of a Snowball stemmer, such as english, or its code, such as en. None: the stem of a word is the word.
        words: The tokenizer of the text.
    """

    def __init__(self, language: str | None, words: Tokenizer) -> None:
        self.language = language
        self._stem: Callable[[str], str] = str
        if language is not None:
            check_stemmer("--bm25-stemmer", language)
            import Stemmer

            self._stem = Stemmer.Stemmer(language).stemWord
        self._small = TURKISH_SMALL if language in TURKISH else SMALL
        self._continues_V = words.continues
        self._words = words
        self._numbers: dict[str, int] = {}
        self._saved: tuple[NDArray[np.uint64], NDArray[np.int64]] | None = None
        self._of_word: dict[bytes, int] = {}
        self._of_piece_V = np.full(len(self._continues_V), _UNREAD)

    def __len__(self) -> int:
        return len(self._numbers) if self._saved is None else len(self._saved[0])

    def save(self, out: Writer) -> None:
        """Write stem_hashes.npy uint64, rising, and stem_numbers.npy int64: the number of the stem with each hash (BLAKE2b)."""
        hashes = np.fromiter(map(_hash, self._numbers), np.uint64, len(self._numbers))
        order = np.argsort(hashes)
        np.save(out.file("stem_hashes.npy"), hashes[order], allow_pickle=False)
        np.save(out.file("stem_numbers.npy"), order, allow_pickle=False)  # the numbers are those of insertion

    @classmethod
    def load(cls, language: str | None, words: Tokenizer, part: Artifact) -> Self:
        """Open what `save` wrote, memory-mapped. Such stems are known, and no others are read. Raises InputError for other arrays."""
        stems = cls(language, words)
        hashes, numbers = (open_array(part.file(f"stem_{name}.npy")) for name in ("hashes", "numbers"))
        if (
            hashes.dtype != np.uint64
            or numbers.dtype != np.int64
            or not len(hashes.shape) == 1 == len(numbers.shape)
            or len(hashes) != len(numbers)
        ):
            raise InputError(f"{part} holds no stems. Make it again.")
        stems._saved = hashes, numbers
        return stems

    def read(self, tokens: TokenIds) -> NDArray[np.int64]:
        """Return the numbers of a text's stems. A new stem gets the next number."""
        return self._ids(tokens, learn=True)

    def known(self, tokens: TokenIds) -> NDArray[np.int64]:
        """Return the numbers of a text's stems, without those that `read` never met."""
        return self._ids(tokens, learn=False)

    def _ids(self, tokens: TokenIds, learn: bool) -> NDArray[np.int64]:
        ids: NDArray[np.int64] = tokens.astype(np.int64)
        starts = np.flatnonzero(~self._continues_V[ids])
        if not len(starts) or starts[0]:
            starts = np.insert(starts, 0, 0)
        bounds = np.append(starts, len(ids))
        alone = np.diff(bounds) == 1  # most words are one wordpiece
        number = np.where(alone, self._of_piece_V[ids[starts]], _UNREAD) if len(ids) else ids
        for place in np.flatnonzero(number == _UNREAD).tolist():
            number[place] = self._number(ids[bounds[place] : bounds[place + 1]], learn)
            if learn and alone[place]:
                self._of_piece_V[ids[bounds[place]]] = number[place]
        return number[number >= 0]

    def _number(self, word: NDArray[np.int64], learn: bool) -> int:
        """The number of a word's stem; -1 for punctuation, and for what is not known."""
        key = word.tobytes()
        if (number := self._of_word.get(key)) is not None:
            return number
        text = self._words.word_of(word).translate(self._small).lower()
        stem = self._stem(text).replace("ı", "i") if any(character.isalnum() for character in text) else ""
        number = self._numbers.setdefault(stem, len(self._numbers)) if stem and learn else self._found(stem)
        if learn:
            self._of_word[key] = number
        return number

    def _found(self, stem: str) -> int:
        if self._saved is None or not stem:
            return self._numbers.get(stem, -1)
        hashes, numbers = self._saved
        key = np.uint64(_hash(stem))
        place = int(np.searchsorted(hashes, key))
        number = int(numbers[place]) if place < len(hashes) and hashes[place] == key else -1
        return number if 0 <= number < len(hashes) else -1


def _hash(stem: str) -> int:
    return int.from_bytes(hashlib.blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
