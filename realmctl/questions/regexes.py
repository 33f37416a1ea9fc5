r"""Run answers that are regular expressions (CuratedTREC) within limits.

A pattern of a data file can be invalid, or can take hours: `(a+)+$` on forty characters. So each question has a time
budget. A pattern that does not compile or exceeds the budget is not a match, and the verdict records the reason.

The `regex` package runs every pattern, because it can be stopped. It expands repeats, so `a{99999999}` would fill the
memory; such patterns are refused. ORQA and the README of CuratedTREC score with Python's `re`. There `re` decides
whether a pattern is valid, and `\w`, `\b` and `\s` are spelled out as `re` defines them. Both agree on every pattern of
CuratedTREC (tests/questions/test_regexes.py). DPR scores with `regex` itself, so its patterns are taken as they are.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from math import prod
from typing import Literal

import regex

Engine = Literal["re", "regex"]
BUDGET_SECONDS = 1.0
MAX_PATTERN_CHARACTERS = 1000
MAX_TEXT_CHARACTERS = 20_000
MAX_REPEATS = 10_000
FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE
"""The flags of ORQA (orqa/utils/eval_utils.py) and of DPR (dpr/data/qa_validation.py)."""

_COUNTS = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_PLAIN_BRACE = re.compile(r"(?<!\\)(?<!\\N)\{(?!\d+(?:,\d*)?\}|,\d+\})")
"""A brace without counts: plain text in `re`, fuzzy matching in `regex`."""

_WORD, _BLANK = r"\p{L}\p{N}_", r"\s\x1c-\x1f"
_AT_EDGE = f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_SPELLED_OUT = {
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\s": f"[{_BLANK}]",
    r"\S": f"[^{_BLANK}]",
    r"\b": _AT_EDGE,
    r"\B": rf"(?!{_AT_EDGE}|\A\Z)",
    r"\ı": "ı",
    r"\İ": "İ",
}
_SPELLED_OUT_IN_CLASS = {r"\w": _WORD, r"\s": _BLANK, "[": r"\[", r"\ı": "ı", r"\İ": "İ"}
"""Where `regex` differs from `re`: combining marks are part of a word, ½ and ² are not, four control characters are not
spaces, and `[[:alpha:]]` is a class. An escaped ı is ı, so that `_dotted` does not make it an escaped i."""
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[(\^?\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
_ESCAPE_OR_BRACKET = re.compile(r"\\.|\[", re.DOTALL)

_REGEX_SYNTAX = re.compile(r"\\[sdwbSDW.?*+()]|\.[*+?]|\)[?*]|\([^()]*\|[^()]*\)|\[\^?\w-\w\]")
"""Regular-expression syntax.

It occurs in 124 of the 430 questions of CuratedTREC's test set, and in none of NQ-open's or WebQuestions' 5,642.
"""

_too_slow: set[str] = set()


class AnswerVerdict(StrEnum):
    """The result of scoring one prediction. Every value but `match` counts as wrong."""

    MATCH = "match"
    NO_MATCH = "no match"
    INVALID = "invalid pattern"
    TIMEOUT = "timeout"


def looks_like_regex(answer: str) -> bool:
    """Return whether an answer holds syntax that only a regular expression has."""
    return _REGEX_SYNTAX.search(answer) is not None


def is_usable(pattern: str) -> bool:
    """Return whether a pattern compiles and is within the limits of `match_any`."""
    return _compiled(pattern, "re") is not None


def match_any(
    patterns: Iterable[str],
    text: str,
    *,
    anywhere: bool,
    engine: Engine = "re",
    budget_seconds: float = BUDGET_SECONDS,
) -> AnswerVerdict:
    """Return whether one of `patterns` matches `text`, at its start or `anywhere`, by the rules of an engine.

    All patterns share the budget. Without a match the verdict is TIMEOUT if a pattern exceeded it, else INVALID if one
    does not compile, has more than 1,000 characters or repeats something 10,000 times, else NO_MATCH. Only the first
    20,000 characters of `text` count. A pattern that took more than half a second is not run again in this process.
    """
    deadline = time.monotonic() + budget_seconds
    verdict = AnswerVerdict.NO_MATCH
    for pattern in patterns:
        outcome = _match(pattern, _limited(text, engine), anywhere, engine, deadline - time.monotonic())
        if outcome in (AnswerVerdict.MATCH, AnswerVerdict.TIMEOUT):
            return outcome
        if outcome is AnswerVerdict.INVALID:
            verdict = outcome
    return verdict


def _match(pattern: str, text: str, anywhere: bool, engine: Engine, seconds: float) -> AnswerVerdict:
    compiled = _compiled(pattern, engine)
    if compiled is None:
        return AnswerVerdict.INVALID
    if seconds <= 0 or pattern in _too_slow:
        return AnswerVerdict.TIMEOUT
    try:
        found = (compiled.search if anywhere else compiled.match)(text, timeout=seconds)
    except TimeoutError:
        if seconds >= BUDGET_SECONDS / 2:
            _too_slow.add(pattern)
        return AnswerVerdict.TIMEOUT
    return AnswerVerdict.NO_MATCH if found is None else AnswerVerdict.MATCH


@lru_cache(maxsize=4096)
def _compiled(pattern: str, engine: Engine) -> regex.Pattern[str] | None:
    repeats = prod(
        max(int(number or 1) for number in counts) or 1 for counts in _COUNTS.findall(pattern[:MAX_PATTERN_CHARACTERS])
    )
    if len(pattern) > MAX_PATTERN_CHARACTERS or repeats > MAX_REPEATS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if engine == "re":
                re.compile(pattern, re.IGNORECASE | re.UNICODE | re.MULTILINE)
                pattern = _with_re_semantics(_PLAIN_BRACE.sub(r"\\{", pattern))
            return regex.compile(pattern, FLAGS | regex.VERSION0)
    except (re.error, regex.error, ValueError, RecursionError, OverflowError):
        return None


def _with_re_semantics(pattern: str) -> str:
    """Rewrite a pattern that `re` compiles, so that `regex` gives it the same meaning."""

    def spelled(match: re.Match[str]) -> str:
        if match[1] is None:
            return _SPELLED_OUT.get(match[0], match[0])
        return _character_class(match[1])

    return _dotted(_ESCAPE_OR_CLASS.sub(spelled, pattern))


def _character_class(content: str) -> str:
    """Rewrite a class, given what is between its brackets. One with `\\W` or `\\S` becomes a choice of two classes."""
    negated, content = content.startswith("^"), content.removeprefix("^")
    complements: list[str] = []

    def spelled(piece: re.Match[str]) -> str:
        if piece[0] in (r"\W", r"\S"):
            complements.append(_SPELLED_OUT[piece[0]])
            return ""
        return _SPELLED_OUT_IN_CLASS.get(piece[0], piece[0])

    rest = _ESCAPE_OR_BRACKET.sub(spelled, content)
    if not complements:
        return f"[{'^' * negated}{rest}]"
    rest = "\\" * rest.startswith("^") + rest
    choices = "|".join([*([f"[{rest}]"] if rest else []), *complements])
    return f"(?:(?!{choices})(?s:.))" if negated else f"(?:{choices})"


def _limited(text: str, engine: Engine) -> str:
    text = text[:MAX_TEXT_CHARACTERS]
    return _dotted(text) if engine == "re" else text


def _dotted(text: str) -> str:
    """Replace the Turkish dotless ı and dotted İ. Without regard to case both equal i and I in `re`, but not in `regex`."""
    return text.replace("ı", "i").replace("İ", "i")


def find_spans(patterns: Iterable[str], text: str, *, budget_seconds: float = BUDGET_SECONDS) -> list[tuple[int, int]]:
    """Return the character offsets (start, end) of all matches of `patterns` in `text`: sorted, distinct, not empty.

    The engine is `regex`, as in the test whether a text holds an answer.

    Invalid patterns find nothing. When the budget is spent, the matches found so far are returned.
    """
    deadline = time.monotonic() + budget_seconds
    found: set[tuple[int, int]] = set()
    for pattern in patterns:
        compiled, seconds = _compiled(pattern, "regex"), deadline - time.monotonic()
        if compiled is None or pattern in _too_slow or seconds <= 0:
            continue
        try:
            found.update(match.span() for match in compiled.finditer(_limited(text, "regex"), timeout=seconds))
        except TimeoutError:
            _too_slow.add(pattern)
    return sorted(span for span in found if span[1] > span[0])
