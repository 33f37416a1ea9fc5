"""Score one prediction, and find answers in a text.

Answers are compared by words. In scripts that do not part words by blanks, each character counts as a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import regex
from numpy.typing import NDArray

from realmctl.errors import ConfigError
from realmctl.questions.regexes import AnswerVerdict, match_any
from realmctl.questions.scorers import NORMALISERS, REGEX_SCORERS, Scorer
from realmctl.tokens.scripts import JOINED, JOINED_LETTER
from realmctl.tokens.token_search import occurrences

AnswerTest = Literal["substring", "tokens", "regex"]

_LETTER_WITH_MARKS = regex.compile(r"(?s:.)\p{M}*")
_DPR_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
_SYLLABLE = r"[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?"
_JOINED_TOKEN = regex.compile(
    rf"{_SYLLABLE}|[{JOINED}]\p{{M}}*|[[\p{{L}}\p{{N}}\p{{M}}]--[{JOINED}]]+|[^\p{{Z}}\p{{C}}]", regex.VERSION1
)
"""In NFD: a Hangul syllable, a character of a script without blanks, a run of letters and digits, or another visible character."""


def exact_match(prediction: str, answers: Sequence[str], scorer: Scorer = "orqa") -> bool:
    """Return whether `prediction` equals one of `answers` under `scorer`: exact match (EM) of one question."""
    return judge(prediction, answers, scorer) is AnswerVerdict.MATCH


def judge(prediction: str, answers: Sequence[str], scorer: Scorer = "orqa") -> AnswerVerdict:
    """Return the verdict of `scorer` on a prediction, which includes whether a regular expression failed to run.

    Args:
        prediction: the predicted answer.
        answers: the right answers. Without answers no prediction is right.
        scorer: those of `NORMALISERS` compare normalised texts. regex-match requires a match at the start, as ORQA scores
            CuratedTREC: "Lincoln" does not accept "Abraham Lincoln". regex-search requires a match anywhere, as the
            README of the data set specifies.

    Raises:
        ConfigError: an unknown scorer.
    """
    if normalise := NORMALISERS.get(scorer):
        right = normalise(prediction) in {normalise(answer) for answer in answers}
        return AnswerVerdict.MATCH if right else AnswerVerdict.NO_MATCH
    if scorer in REGEX_SCORERS:
        return match_any(answers, prediction, anywhere=scorer == "regex-search")
    raise ConfigError(f"'{scorer}' is not a scorer. Use one of {', '.join(get_args(Scorer))}.")


def has_answer(text: str, answers: Sequence[str], how: AnswerTest = "substring") -> bool:
    """Return whether `text` contains one of `answers`. Empty answers are never found.

    Args:
        text: a block, for instance.
        answers: texts, or with "regex" regular expressions.
        how: "substring" compares raw and case-sensitive text, as ORQA supervises its retriever: "art" is in "party".
            "tokens" compares runs of lower-cased words after NFD, as DPR validates retrieval; see `words_of` for other scripts. "regex"
            searches anywhere after NFD with the `regex` package, as DPR does.

    Raises:
        ConfigError: an unknown `how`.
    """
    if how == "substring":
        return any(answer in text for answer in answers if answer)
    if how == "tokens":
        held = words_of(text)
        return any(_contains(held, words_of(answer)) for answer in answers)
    if how == "regex":
        patterns = (unicodedata.normalize("NFD", answer) for answer in answers if answer)
        return (
            match_any(patterns, unicodedata.normalize("NFD", text), anywhere=True, engine="regex")
            is AnswerVerdict.MATCH
        )
    raise ConfigError(f"'{how}' is not an answer test. Use one of {', '.join(get_args(AnswerTest))}.")


def answer_spans(text: str, answers: Iterable[str]) -> list[tuple[int, int]]:
    """Return where `text` contains one of `answers` as words: sorted character offsets (start, end), which may
    overlap.

    Words are those of `has_answer`'s tokens. The offsets count characters of `text` itself, not of its NFD.
    """
    decomposed, origin = _nfd_with_origin(text)
    tokens = list(_tokens_in(decomposed).finditer(decomposed))
    held, found = [token[0].lower() for token in tokens], set()
    for wanted in map(words_of, answers):
        for at in _places(held, wanted):
            last = tokens[at + len(wanted) - 1].end() - 1
            found.add((origin[tokens[at].start()][0], origin[last][1]))
    return sorted(found)


def _nfd_with_origin(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the NFD of `text`, and for each of its characters the (start, end) in `text` of the letter it comes from."""
    decomposed, origin = [], []
    for match in _LETTER_WITH_MARKS.finditer(text):
        piece = unicodedata.normalize("NFD", match[0])
        decomposed.append(piece)
        origin += [match.span()] * len(piece)
    return "".join(decomposed), origin


def words_of(text: str) -> list[str]:
    """Return runs of letters, marks and digits, and each other visible character, lower-cased after NFD (DPR's SimpleTokenizer).

    Unlike there, a character of a script without blanks is a word, and so is a Hangul syllable: 首都 is in 首都は, and 서울 in 서울은.
    """
    decomposed = unicodedata.normalize("NFD", text)
    return [token.lower() for token in _tokens_in(decomposed).findall(decomposed)]


def _tokens_in(decomposed: str) -> regex.Pattern[str]:
    """Return the pattern of the words of a text in NFD. DPR's own is three times as fast."""
    return _JOINED_TOKEN if not decomposed.isascii() and JOINED_LETTER.search(decomposed) else _DPR_TOKEN


def _contains(held: list[str], wanted: list[str]) -> bool:
    return next(_places(held, wanted), None) is not None


def _places(held: list[str], wanted: list[str]) -> Iterator[int]:
    width = len(wanted)
    if width:
        yield from (at for at in range(len(held) - width + 1) if held[at : at + width] == wanted)


def find_answer_tokens(
    block: Sequence[int] | NDArray[np.integer[Any]], answers: Iterable[Sequence[int]], max_width: int
) -> list[tuple[int, int]]:
    """Return where one of `answers` occurs in `block`, as sorted wordpiece positions (first, last), `last` inclusive.

    Sequences must be equal (orqa/models/orqa_model.py), so only whole wordpieces are found. Answers without a wordpiece
    or with more than `max_width` are never found. Occurrences may overlap.
    """
    ids = np.asarray(block)
    return sorted(
        (at, at + len(answer) - 1)
        for answer in {tuple(map(int, answer)) for answer in answers}
        if len(answer) <= max_width
        for at in occurrences(ids, np.array(answer)).tolist()
    )
