"""Find sentence boundaries as character offsets, by a regular expression and rules about abbreviations.

The rules are this project's own. They agree with NLTK's Punkt on more than 98 % of the boundaries of encyclopedic
English, at ten times its speed (benchmarks/dump_to_blocks.py). A sentence never contains a line break, because each
paragraph and each list item is a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from realmctl.corpus.document import CharacterRange
from realmctl.errors import ConfigError, InputError, require_package

Splitter = Callable[[str], list[CharacterRange]]
PUNKT_FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An end mark before a space, or a line break. It starts with one character set, because `re` searches that fastest.
CANDIDATE = re.compile(r"""[.!?…\n](?:(?<=\n)\s*|(?<!\n)["'”’)\]»]*\s+(?=["'“‘«(\[¿¡]*\S))""")
ABBREVIATIONS = _words(
    """
    mr mrs ms dr prof rev fr hon pres gov sen rep gen col maj capt cmdr lt sgt cpl pvt adm st ste mt sts
    jr sr messrs mmes vs v cf viz al ca c approx est b d r fl no nos vol vols pp p ch chap sec fig figs
    eq eqs ed eds trans op cit ibid dept univ assn inc ltd co corp bros jan feb mar apr jun jul aug sept
    sep oct nov dec mon tue wed thu fri sat sun gk lat lit gr heb ger e.g i.e a.k.a u.s u.k u.n ph.d m.d
    b.a m.a b.sc m.sc d.c a.m p.m b.c a.d u.s.a j.r nr rd ave blvd hwy sq min max temp esp incl excl
    abbr cont pl syn var brig bvt subsp spp sp aka orig circ
    """
)
LONGEST_ABBREVIATION = max(map(len, ABBREVIATIONS))
OFTEN_LAST = _words(
    """
    etc inc ltd co corp jr sr al a.m p.m b.c a.d u.s u.k u.n d.c u.s.a ph.d m.d b.a m.a no
    """
)
NUMBERED = frozenset({"no", "nos"})
STARTERS = _words(
    """
    the a an in on at it its he she his her they their this that these those there we our you i as after
    although during while when however but and by for from with since some many most both according also
    another one two all if no not to under early later
    """
)
CLOSING_BRACKETS = ")]"
WORD_BORDER = re.compile(r"[\s(\[\"'“”‘’—–/,;]")


def split(text: str) -> list[CharacterRange]:
    """Return (start, end) of each sentence in order, without the spaces around it. None is empty or contains a line
    break.
    """
    spans, start = list[CharacterRange](), len(text) - len(text.lstrip())
    for match in CANDIDATE.finditer(text):
        mark, place, stop = match[0], match.start(), match.end()
        if "\n" in mark or _ends(text, place, stop):
            end = place + len(mark.rstrip()) if mark[0] != "\n" else start + len(text[start:place].rstrip())
            if start < end:
                spans.append((start, end))
            start = stop
    if end := len(text[start:].rstrip()):
        spans.append((start, start + end))
    return spans


def _ends(text: str, place: int, stop: int) -> bool:
    """Return whether the mark at `place` ends a sentence; the next word starts at `stop`."""
    following = text[stop]
    if following in "\"'“‘«([¿¡":
        following = text[stop : stop + 4].lstrip("\"'“‘«([¿¡")[:1] or following
    if following in CLOSING_BRACKETS:
        return False
    if text[place] != ".":
        return not following.islower()
    if following.islower() or following in ",;:-–—":
        return False
    tail = text[max(0, place - LONGEST_ABBREVIATION - 1) : place]
    if len(tail) > LONGEST_ABBREVIATION and tail.isalpha():
        return True  # too many letters for an abbreviation
    word = WORD_BORDER.split(text[max(0, place - 24) : place].rpartition(" ")[2])[-1]
    return _period_ends(word, text[stop : stop + 24])


def _period_ends(word: str, after: str) -> bool:
    """Return whether the full stop after `word` ends a sentence when the text `after` follows."""
    plain = word.lower()
    new_sentence = after.partition(" ")[0].rstrip(",;:").lower() in STARTERS
    if len(word) == 1 and word.isupper():
        return word == "I" or new_sentence
    if plain in NUMBERED:
        return not after[:1].isdigit()
    if plain in ABBREVIATIONS or _initials(word):
        return plain in OFTEN_LAST and new_sentence
    return True


def _initials(word: str) -> bool:
    """Return whether a word is letters and full stops in turn, such as J.R.R or U.S."""
    return len(word) > 2 and word[1::2].strip(".") == "" and word[::2].isalpha()


def punkt_folder(name: str) -> Path | None:
    """Return the folder of a splitter's Punkt model; None for a splitter without one."""
    kind, _, folder = name.partition(":")
    return Path(folder) if kind == "punkt" and folder else None


def check_splitter(flag: str, name: str) -> None:
    """Check that a splitter can be used. Raises ConfigError or ResourceError, and InputError for a folder without a Punkt model."""
    folder = punkt_folder(name)
    if folder is None and name not in ("rules", "spacy"):
        raise ConfigError(f"{flag} {name}: use rules, spacy or punkt:FOLDER.")
    if folder is not None:
        require_package("nltk", "punkt", f"{flag} punkt")
        if missing := [each for each in PUNKT_FILES if not (folder / each).is_file()]:
            raise InputError(
                f"{folder} is not a Punkt model: it has no {', '.join(missing)}. Name a language's folder of nltk_data's punkt_tab."
            )


def splitter(name: str) -> Splitter:
    """Return a splitter by name: "rules" (this file), "spacy" (its sentencizer), or "punkt:FOLDER" (NLTK's)."""
    folder = punkt_folder(name)
    return punkt(folder) if folder else split if name == "rules" else _spacy_split


def _spacy_split(text: str) -> list[CharacterRange]:
    spans, start = list[CharacterRange](), 0
    for line in text.split("\n"):
        for sentence in _spacy()(line).sents if line.strip() else ():
            words = sentence.text.strip()
            begin = start + sentence.start_char + len(sentence.text) - len(sentence.text.lstrip())
            if words:
                spans.append((begin, begin + len(words)))
        start += len(line) + 1
    return spans


def punkt(folder: Path) -> Splitter:
    """Return NLTK's Punkt with the model in a folder of nltk_data's punkt_tab.

    Punkt does not look at lines, so a sentence may contain a line break, as in ORQA's blocks.
    """
    from nltk.tabdata import PunktDecoder
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    abbreviations, collocations, orthography, starters = (
        (folder / name).open(encoding="utf-8") for name in PUNKT_FILES
    )
    read, parameters = PunktDecoder(), PunktParameters()
    with abbreviations, collocations, orthography, starters:
        parameters.abbrev_types, parameters.sent_starters = read.txt2set(abbreviations), read.txt2set(starters)
        parameters.collocations = set(read.tab2tups(collocations))
        parameters.ortho_context = read.tab2intdict(orthography)
    tokenizer = PunktSentenceTokenizer(parameters)

    def sentences_of(text: str) -> list[CharacterRange]:
        found = [(start, end, text[start:end]) for start, end in tokenizer.span_tokenize(text)]
        return [
            (end - len(words.lstrip()), start + len(words.rstrip())) for start, end, words in found if words.strip()
        ]

    return sentences_of


@lru_cache(maxsize=1)
def _spacy() -> Any:
    import spacy

    language = spacy.blank("en")
    language.add_pipe("sentencizer")
    language.max_length = 2**25
    return language
