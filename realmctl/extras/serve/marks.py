"""The words of a query in the texts that it found, for the page to mark."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable

import regex

from realmctl.corpus.corpus import Corpus

LOOKED_AT = 400
"""Blocks that show which words are in most texts."""
COMMON = 0.1
"""Share of these blocks in which a word stands that says nothing, such as "the"."""
WORD = regex.compile(r"[\p{L}\p{N}\p{M}_]+")
WITHOUT_BLANKS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
"""Scripts that write no blanks between words: there a run of letters is looked for within the text."""


class Marks:
    """Finds the words of a query, whatever their endings and their case, but not those that most blocks hold.

    stemmer: a Snowball stemmer, by which BM25 compares words; None compares whole words.
    """

    def __init__(self, corpus: Corpus, stemmer: str | None) -> None:
        self._stem: Callable[[str], str] = str
        if stemmer:
            import Stemmer

            self._stem = Stemmer.Stemmer(stemmer).stemWord
        step = max(1, len(corpus) // LOOKED_AT)
        rows = range(0, len(corpus), step)
        held = Counter(
            stem for row in rows for stem in {self._of(word) for word in WORD.findall(corpus.block(row).text)}
        )
        self._common = {stem for stem, count in held.items() if count > max(2, COMMON * len(rows))}

    def _of(self, word: str) -> str:
        return self._stem(unicodedata.normalize("NFKC", word).casefold())

    def share(self, query: str, text: str) -> float:
        """The share of a query's words in the text; 0 for a query of words that most blocks hold."""
        stems = {self._of(word) for word in WORD.findall(query)} - self._common
        return len(stems & {self._of(word) for word in WORD.findall(text)}) / max(1, len(stems))

    def of(self, query: str, text: str) -> list[tuple[int, int]]:
        """Where the query's words begin and end in the text, in characters, in order and without overlap."""
        words = WORD.findall(query)
        stems = {self._of(word) for word in words} - self._common
        found = {match.span() for match in WORD.finditer(text) if self._of(match.group()) in stems}
        for word in words:
            if WITHOUT_BLANKS.search(word):
                found |= {match.span() for match in regex.finditer(regex.escape(word), text)}
        kept: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if not kept or start >= kept[-1][1]:
                kept.append((start, end))
        return kept
