"""Find sentence boundaries as character offsets, by a regular expression and rules about abbreviations.

The rules are this project's own. They agree with NLTK's Punkt on more than 98 % of the boundaries of encyclopedic
English, at ten times its speed (benchmarks/rows/dump_to_blocks.py). A sentence never contains a line break, because each
paragraph and each list item is a line. Marks of other scripts count in every language. A language decides which words are abbreviations.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from realmctl import data
from realmctl.corpus.document import CharacterRange
from realmctl.corpus.languages import plain_language
from realmctl.errors import ConfigError, InputError, require_package
from realmctl.tokens.scripts import is_small

Splitter = Callable[[str], list[CharacterRange]]
PUNKT_FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")
WIDE = (
    "\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u166e"
    "\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b5a\u1b5b\u1b5e\u1b5f\u1c3b\u1c3c\u1c7e\u1c7f\u203c\u203d"
    "\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f"
    "\uaaf0\uaaf1\uabeb\ufe12\ufe15\ufe16\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
)
"""The marks outside ASCII that end a sentence, with a blank after them or without (Unicode's property Sentence_Terminal, first plane)."""
WIDE_POINTS = "\ufe52\uff0e"
"""Those that are decimal points too."""
WIDE_PAIRS = ("「」", "『』", "（）", "《》", "〈〉", "【】", "“”")
WIDE_CLOSERS = "」』）》〉】”’｣﹂﹄"
QUOTED = 200
"""A mark in brackets ends no sentence where they open and close within so many characters around it."""
# An end mark before a space, or one that needs no space, or a line break. It starts with one character set, because `re` searches that fastest.
CANDIDATES = """[.!?…{more}\\n{wide}](?:(?<=[.!?…{more}])["'”’)\\]»]*\\s+(?=["'“‘«(\\[¿¡]*\\S)|(?<=\\n)\\s*|(?<=[{wide}])[{wide}!?…]*[{closers}"')\\]»]*\\s*(?=\\S))"""
CANDIDATE, GREEK_CANDIDATE = (
    re.compile(CANDIDATES.format(more=more, wide=WIDE, closers=WIDE_CLOSERS)) for more in ("", ";\u037e")
)
"""A Greek question ends in a semicolon, or in the sign of Unicode that looks like one."""
CLOSING_BRACKETS = ")]"
ELIDED = re.compile(r"\w['’]\w")
"""A letter behind an apostrophe, as in can't. It is no abbreviation."""
WORD_BORDER = re.compile(r"[\s(\[\"'“”‘’—–/,;]")


@dataclass(frozen=True)
class SentenceWords:
    """The words that decide whether a full stop ends a sentence, in lower case.

    Attributes:
        abbreviations: after them a sentence goes on.
        often_last: the abbreviations that end a sentence where one of `starters` follows.
        starters: frequent first words of a sentence.
        numbered: those before a number.
        ordinals: whether a number of two digits with a full stop is an ordinal.
        any_letter: whether a small letter with a full stop is an abbreviation, as in "z. B.".
        greek: whether a semicolon ends a question.
    """

    abbreviations: frozenset[str]
    often_last: frozenset[str]
    starters: frozenset[str]
    numbered: frozenset[str] = frozenset()
    ordinals: bool = False
    any_letter: bool = False
    greek: bool = False

    @cached_property
    def longest(self) -> int:
        """The number of letters of the longest abbreviation, 1 for an initial."""
        return max(map(len, self.abbreviations), default=1)


@lru_cache(maxsize=8)
def sentence_words(language: str) -> SentenceWords:
    """Return the words of a language by its code, from realmctl/data. A language without a list has none, so that only the rules of
    Unicode count.
    """
    plain, listed = plain_language(language), data.table("sentences")
    starters = data.words(listed["starters"].get(plain, ""))
    if plain == "en":
        english = {kind: data.words(found) for kind, found in listed["english"].items()}
        return SentenceWords(english["abbreviations"], english["often_last"], starters, english["numbered"])
    known = data.words(data.table("abbreviations").get(plain, ""))
    known |= {part for word in known for part in word.split(".") if part}
    ordinals = plain in data.words(listed["ordinals"]["languages"])
    return SentenceWords(known, known, starters, ordinals=ordinals, any_letter=True, greek=plain == "el")


def split(text: str, words: SentenceWords | None = None) -> list[CharacterRange]:
    """Return (start, end) of each sentence in order, without the spaces around it. None is empty or contains a line
    break. Without `words` the text is English.
    """
    words = words or sentence_words("en")
    spans, start = list[CharacterRange](), len(text) - len(text.lstrip())
    for match in (GREEK_CANDIDATE if words.greek else CANDIDATE).finditer(text):
        mark, place, stop = match[0], match.start(), match.end()
        if "\n" in mark or _ends(text, start, place, stop, words):
            end = place + len(mark.rstrip()) if mark[0] != "\n" else start + len(text[start:place].rstrip())
            if start < end:
                spans.append((start, end))
            start = stop
    if end := len(text[start:].rstrip()):
        spans.append((start, start + end))
    return spans


def _ends(text: str, start: int, place: int, stop: int, words: SentenceWords) -> bool:
    """Return whether the mark at `place` ends the sentence that begins at `start`; the next word starts at `stop`."""
    following = text[stop]
    if text[place] not in ".!?…;\u037e":
        return _wide_ends(text, start, place, stop)
    if following in "\"'“‘«([¿¡":
        following = text[stop : stop + 4].lstrip("\"'“‘«([¿¡")[:1] or following
    if following in CLOSING_BRACKETS:
        return False
    if text[place] != ".":
        return not is_small(following)
    if is_small(following) or following in ",;:-–—":
        return False
    tail = text[max(0, place - words.longest - 1) : place]
    if len(tail) > words.longest and tail.isalpha():
        return True  # too many letters for an abbreviation
    if text[place - 1].islower() and ELIDED.fullmatch(text, max(0, place - 3), place):
        return True
    word = WORD_BORDER.split(text[max(0, place - 24) : place].rpartition(" ")[2])[-1]
    return _period_ends(word, text[stop : stop + 24], words)


def _wide_ends(text: str, start: int, place: int, stop: int) -> bool:
    """The same for a mark that needs no blank after it. Speech that is quoted goes on: 「来る。」と言った."""
    following, marks = text[stop], text[place:stop].rstrip()
    if following in "、，,;；：" or (text[place] in WIDE_POINTS and following.isdigit()):
        return False
    if marks[-1] in WIDE_CLOSERS and "\u3041" <= following <= "\u309f":
        return False
    before, after = text[max(start, place - QUOTED) : stop], text[stop : stop + QUOTED].partition("\n")[0]
    return not any(before.count(pair[0]) > before.count(pair[1]) and pair[1] in after for pair in WIDE_PAIRS)


def _period_ends(word: str, after: str, words: SentenceWords) -> bool:
    """Return whether the full stop after `word` ends a sentence when the text `after` follows."""
    plain = word.lower()
    new_sentence = after.partition(" ")[0].rstrip(",;:").lower() in words.starters
    if len(word) == 1 and (word.isupper() or (words.any_letter and word.islower())):
        return word == "I" or new_sentence
    if plain in words.numbered:
        return not after[:1].isdigit()
    if words.ordinals and word.isdigit() and len(word) < 3:
        return False
    if plain in words.abbreviations or _initials(word):
        return plain in words.often_last and new_sentence
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


def splitter(name: str, language: str = "en") -> Splitter:
    """Return a splitter by name: "rules" (this file), "spacy" (its sentencizer), or "punkt:FOLDER" (NLTK's).

    A Punkt model has its own language.
    """
    if folder := punkt_folder(name):
        return punkt(folder)
    if name == "rules":
        return partial(split, words=sentence_words(language))
    return partial(_spacy_split, language=plain_language(language))


def _spacy_split(text: str, language: str) -> list[CharacterRange]:
    spans, start = list[CharacterRange](), 0
    for line in text.split("\n"):
        for sentence in _spacy(language)(line).sents if line.strip() else ():
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
def _spacy(language: str) -> Any:
    """Return spaCy's sentencizer with the tokenizer of a language; the one of all languages where spaCy has none that works here."""
    import spacy

    try:
        pipeline = spacy.blank(language)
    except ImportError:
        pipeline = spacy.blank("xx")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 2**25
    return pipeline
