"""Answers that are regular expressions (CuratedTREC), run without trusting them.

A pattern from a data file can be invalid, or take hours: `(a+)+$` on forty characters. Every question has a
budget of time; a pattern that outruns it, or that does not compile, is no match, and the verdict says which,
so it can be counted.

Python's own `re` decides what is a valid pattern, for the benchmarks are scored with it; the `regex` package,
which can be stopped, then runs it, with `\\w`, `\\b` and `\\s` spelled out as `re` means them. The two agree on
every pattern of CuratedTREC (tests/text/qa/test_regexes.py). `regex` alone would take recursion and fuzzy
matching from a data file, and writes repeats out: `a{99999999}` fills the memory.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from math import prod

import regex

BUDGET_SECONDS = 1.0
MAX_PATTERN_CHARACTERS = 1000
MAX_TEXT_CHARACTERS = 20_000
MAX_REPEATS = 10_000
FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE
"""The flags of ORQA (orqa/utils/eval_utils.py) and of DPR (dpr/data/qa_validation.py)."""

_COUNTS = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_PLAIN_BRACE = re.compile(r"(?<!\\)(?<!\\N)\{(?!\d+(?:,\d*)?\}|,\d+\})")
"""A brace that counts nothing: plain text to `re`, fuzzy matching to `regex`."""

_WORD, _BLANK = r"\p{L}\p{N}_", r"\s\x1c-\x1f"
_AT_EDGE = f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_OUTSIDE = {
    r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]", r"\s": f"[{_BLANK}]", r"\S": f"[^{_BLANK}]",
    r"\b": _AT_EDGE, r"\B": rf"(?!{_AT_EDGE}|\A\Z)",
}  # fmt: skip
_INSIDE = {r"\w": _WORD, r"\s": _BLANK, "[": r"\["}
"""To `regex` a combining mark is part of a word, ½ and ² are not, four control characters are no spaces, and
`[[:alpha:]]` is a class of its own. Inside brackets `\\W` and `\\S` stay as it has them."""
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[(\^?\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
_ESCAPE_OR_BRACKET = re.compile(r"\\.|\[", re.DOTALL)

_REGEX_SYNTAX = re.compile(r"\\[sdwbSDW.?*+()]|\.[*+?]|\)[?*]|\([^()]*\|[^()]*\)|\[\^?\w-\w\]")
"""What 125 of the 430 questions of CuratedTREC's test set hold, and none of NQ-open's or WebQuestions' 5,642."""

_outran: set[str] = set()


class Verdict(StrEnum):
    """What scoring an answer came to; all but `match` count as wrong."""

    MATCH = "match"
    NO_MATCH = "no match"
    INVALID = "invalid pattern"
    TIMEOUT = "timeout"


def looks_like_regex(answer: str) -> bool:
    """Return whether an answer holds syntax that only a regular expression has."""
    return _REGEX_SYNTAX.search(answer) is not None


def match_any(patterns: Iterable[str], text: str, *, anywhere: bool, budget_seconds: float = BUDGET_SECONDS) -> Verdict:
    """Whether any of `patterns` matches `text`: at its very start, or `anywhere`.

    All patterns share the budget. Without a match the worst that happened is the verdict: TIMEOUT, then
    INVALID (does not compile, has more than 1,000 characters or repeats something 10,000 times), then
    NO_MATCH. Text beyond 20,000 characters is not looked at. A pattern that outran half a second is not run
    again by this process, so that it costs a question its budget once and not once for every block retrieved.
    """
    deadline = time.monotonic() + budget_seconds
    verdict = Verdict.NO_MATCH
    for pattern in patterns:
        outcome = _match(pattern, _readable(text), anywhere, deadline - time.monotonic())
        if outcome in (Verdict.MATCH, Verdict.TIMEOUT):
            return outcome
        if outcome is Verdict.INVALID:
            verdict = outcome
    return verdict


def _match(pattern: str, text: str, anywhere: bool, seconds: float) -> Verdict:
    compiled = _compiled(pattern)
    if compiled is None:
        return Verdict.INVALID
    if seconds <= 0 or pattern in _outran:
        return Verdict.TIMEOUT
    try:
        found = (compiled.search if anywhere else compiled.match)(text, timeout=seconds)
    except TimeoutError:
        if seconds >= BUDGET_SECONDS / 2:
            _outran.add(pattern)
        return Verdict.TIMEOUT
    return Verdict.NO_MATCH if found is None else Verdict.MATCH


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> regex.Pattern[str] | None:
    repeats = prod(
        max(int(number or 1) for number in counts) or 1 for counts in _COUNTS.findall(pattern[:MAX_PATTERN_CHARACTERS])
    )
    if len(pattern) > MAX_PATTERN_CHARACTERS or repeats > MAX_REPEATS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, re.IGNORECASE | re.UNICODE | re.MULTILINE)
        return regex.compile(_as_re_means_it(_PLAIN_BRACE.sub(r"\\{", pattern)), FLAGS | regex.VERSION0)
    except (re.error, regex.error, ValueError, RecursionError, OverflowError):
        return None


def _as_re_means_it(pattern: str) -> str:
    """A pattern that `re` compiles, written so that `regex` reads the same in it."""

    def spelled(match: re.Match[str]) -> str:
        if match[1] is None:
            return _OUTSIDE.get(match[0], match[0])
        inside = _ESCAPE_OR_BRACKET.sub(lambda piece: _INSIDE.get(piece[0], piece[0]), match[1])
        return f"[{inside}]"

    return _ESCAPE_OR_CLASS.sub(spelled, _dotted(pattern))


def _readable(text: str) -> str:
    return _dotted(text[:MAX_TEXT_CHARACTERS])


def _dotted(text: str) -> str:
    """Where case does not count, the Turkish dotless i is an i to `re` and a letter of its own to `regex`."""
    return text.replace("ı", "i")


def find_spans(patterns: Iterable[str], text: str, *, budget_seconds: float = BUDGET_SECONDS) -> list[tuple[int, int]]:
    """Character offsets (start, end) of all that `patterns` match in `text`: sorted, each once, none empty.

    Patterns that `match_any` would call invalid or not run again find nothing; when the budget is spent, what
    was found counts.
    """
    deadline = time.monotonic() + budget_seconds
    found: set[tuple[int, int]] = set()
    for pattern in patterns:
        compiled, seconds = _compiled(pattern), deadline - time.monotonic()
        if compiled is None or pattern in _outran or seconds <= 0:
            continue
        try:
            found.update(match.span() for match in compiled.finditer(_readable(text), timeout=seconds))
        except TimeoutError:
            _outran.add(pattern)
    return sorted(span for span in found if span[1] > span[0])
