"""Dates by rules in eighteen languages beside English. The rules stand in realmctl/data/calendars.toml; dates.py has those of English.

A date is found by its form: a day, a month, or a year beside a word of the calendar (1990年, 14 mars 1879, XX век), an era, a century or a
decade. Where years stand alone, as in European languages, a number from 1000 to 2099 is one only after a word that says so ("en 1905",
"seit 1905"), in brackets, or in a range that goes forward.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from realmctl.data import table
from realmctl.spans.salient import DATE, SalientSpan, resolve_overlaps

PART = re.compile(r"\{([a-z_]+)\}")
SHARED: dict[str, str] = table("calendars")["parts"]
"""The parts of expressions that all languages have."""


def _whole(expression: str, parts: dict[str, str]) -> str:
    """Return an expression with its parts in the place of their names, and without line breaks."""
    return PART.sub(lambda part: _whole(parts[part[1]], parts), "".join(map(str.strip, expression.splitlines())))


_HINT = re.compile(_whole("{hint}", SHARED))
_LONE_YEARS = re.compile(_whole("{lone_year}", SHARED))


@dataclass(frozen=True)
class Calendar:
    """The dates of a language.

    Attributes:
        shapes: a pattern of dates that are told by their form.
        before_year: a pattern of what stands before a year that stands alone. Empty: none does.
    """

    shapes: str
    before_year: str = ""

    def find(self, text: str) -> list[SalientSpan]:
        """Return the dates in `text` from left to right without overlaps, as character offsets."""
        if not _HINT.search(text):
            return []
        shaped = [SalientSpan(*match.span(), DATE) for match in _compiled(self.shapes).finditer(text)]
        return resolve_overlaps([*shaped, *self._years(text)])

    def _years(self, text: str) -> Iterator[SalientSpan]:
        if not self.before_year:
            return
        context = _compiled(self.before_year, re.IGNORECASE)
        for match in _LONE_YEARS.finditer(text):
            before = text[max(0, match.start() - 32) : match.start()]
            if context.search(before) or _goes_forward(match[0]):
                yield SalientSpan(*match.span(), DATE)


@lru_cache(maxsize=32)
def _compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def _goes_forward(years: str) -> bool:
    """Return whether a range such as "1914–1918" or "1914–18" goes forward."""
    first, *others = re.findall(r"\d+", years)
    return bool(others) and int(first) < int(first[: 4 - len(others[0])] + others[0])


def _calendar(language: dict[str, Any]) -> Calendar:
    """Return the calendar that the table of a language describes."""
    parts = {**SHARED, **language}
    shapes = "|".join(f"(?:{_whole(shape, parts)})" for shape in (*language["shapes"], "{iso}"))
    return Calendar(shapes, _whole("{before_any_year}", parts) if "before_year" in language else "")


CALENDARS = {language: _calendar(entry) for language, entry in table("calendars").items() if language != "parts"}
"""The calendars by the code of their language. Digits of any script count, such as those of Arabic."""
