"""Decide by capital letters what is a proper name in English text. The rules are this project's own. In other languages they decide
only about links, and in a script without capital letters they accept each.

The first word of a sentence always has a capital, so other sentences decide about it: a word that the document also
writes in lower case is common, and a word that it capitalises inside a sentence is a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from realmctl import data
from realmctl.spans.dates import is_date
from realmctl.tokens.scripts import is_small

_CAPITALISED = (
    r"(?:(?:\p{Lu}\.)+(?=\s?\p{L}|\W|$)|(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Jr|Sr)\.(?=\s\p{Lu})"
    r"|\p{Lu}[\p{L}\p{M}\d]*(?:(?:['’](?!s\b)|[-–&.])\p{L}[\p{L}\p{M}\d]*|-\d+)*)"
)
_PARTICLE = r"(?:of|the|de|del|della|di|da|do|dos|du|la|le|van|von|der|den|zu|bin|ibn|al|el|y)"
_NUMERAL = r"(?:[1-9]\d{0,2}(?![\d.,%]|\s?[–-]\s?\d))"
_RUN = regex.compile(
    rf"(?<![\w.°º′″])(?<![°º]\s){_CAPITALISED}(?:\s(?:{_PARTICLE}\s){{0,2}}{_CAPITALISED}|\s{_NUMERAL}(?!\w|\s\p{{Ll}}+s\b))*"
)
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}'’-]*")
_FIRST_WORD = regex.compile(r"(?:^|[:;]\s|[\"“‘«(\[*•]\s*)\W*$")

_AFTER_PARTICLES = regex.compile(rf"(?:{_PARTICLE}[\s-]){{1,2}}{_CAPITALISED}(?:\s{_CAPITALISED})*")
_TRIM = regex.compile(r"\s*(?:(?:[Tt]he|[Aa]n?)\s+(?=\p{Lu}))?(.*?)(?:['’]s?)?\s*", regex.DOTALL)

_DEGREES = regex.compile(r"[\d.,\s–−-]*\d\s?[°º][\d\s.,°º′″'’\"–−-]*(?:[NSEWCFK]\b\.?,?[\d\s.,°º′″'’\"–−-]*)*")
"""A latitude, a longitude, both, or a temperature: 18°S, 51°30′N, 0°7′W, 30 °C."""

COMMON_STARTERS = data.words(data.table("sentences")["names"]["common_starters"])
"""Frequent first words of English sentences that are not names. For other words the document's own usage decides."""


class DocumentCasing:
    """How one document writes its words, as evidence for the first words of its sentences. `language` is that of its dates."""

    def __init__(self, sentences: Iterable[str], language: str = "en") -> None:
        self.language = language
        self._lower: set[str] = set()
        self._names: set[str] = set()
        for sentence in sentences:
            for match in _WORD.finditer(sentence):
                word = match[0]
                if is_small(word[0]):
                    self._lower.add(word)
                elif not starts_sentence(sentence, match.start()):
                    self._names.add(word)

    def is_common(self, word: str) -> bool:
        """Return whether a capitalised `word` at the start of a sentence is probably not a name."""
        lower = word.lower()
        return lower in COMMON_STARTERS or lower in self._lower

    def is_name(self, word: str) -> bool:
        """Return whether the document capitalises `word` inside a sentence and never writes it in lower case."""
        return word in self._names and not self.is_common(word)


def starts_sentence(sentence: str, at: int) -> bool:
    """Return whether the word at offset `at` must have a capital: it is the first, or follows a quote or colon."""
    return _FIRST_WORD.search(sentence, max(0, at - 4), at) is not None


def looks_like_name(surface: str, sentence: str, at: int, casing: DocumentCasing) -> bool:
    """Return whether `surface`, at offset `at` of `sentence`, is written as a name. Dates and degrees are not names."""
    words = _WORD.findall(surface)
    if not words or len(surface) < 2 or is_date(surface, casing.language) or _DEGREES.fullmatch(surface):
        return False
    first, others = words[0], words[1:]
    if is_small(first[0]):
        return not first.islower() or _AFTER_PARTICLES.fullmatch(surface) is not None
    if not first.istitle() or any(word[0].isupper() for word in others):
        return True
    if starts_sentence(sentence, at):
        return casing.is_name(first)
    return bool(others) or first.lower() not in COMMON_STARTERS


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the offsets without a leading article, a possessive ending and spaces."""
    surface = text[start:end]
    core = _TRIM.fullmatch(surface)
    return (start + core.start(1), start + core.end(1)) if core else (start, end)


def name_runs(sentence: str, casing: DocumentCasing) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each run of capitalised words in `sentence` that looks like a name."""
    for match in _RUN.finditer(sentence):
        start, end = match.span()
        if starts_sentence(sentence, start):
            start += _common_words(sentence[start:end], casing)
        start, end = trimmed(sentence, start, end)
        if looks_like_name(sentence[start:end], sentence, start, casing):
            yield start, end


def _common_words(run: str, casing: DocumentCasing) -> int:
    """Return the number of characters of the common words at the start of a run that begins a sentence."""
    skipped = 0
    for word in run.split(" "):
        if not casing.is_common(word):
            break
        skipped += len(word) + 1
    return skipped
