"""The fields of documents: what a document says of itself beside its title and its text, such as a date, a source or tags."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

FieldType = Literal["text", "number", "date", "list"]
Value = str | int | float | list[str]
Fields = Mapping[str, Value]
NOTHING: Fields = {}
LONGEST_NAME = 200
"""Characters of the name of a field."""
NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?")
YEAR = re.compile(r"[12][0-9]{3}")
DATE = re.compile(
    r"([0-9]{4})[-/](0[1-9]|1[0-2])(?:[-/](0[1-9]|[12][0-9]|3[01])(?:[T ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.[0-9]{1,9})?)?"
    r" ?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?"
)
"""A year and a month, and what may follow. A year alone is a number too."""


def kept(given: Mapping[str, Any], before: str = "") -> dict[str, Value]:
    """Return what a document says of itself as fields: names in lower case, those of an object within an object with a dot between.

    Empty values are left out, and so are lists of lists or objects.
    """
    found = dict[str, Value]()
    for key, value in given.items():
        name = f"{before}{key}".strip().lower()
        if not 0 < len(name) <= LONGEST_NAME:
            continue
        if isinstance(value, Mapping):
            found |= kept(value, f"{name}.")
        elif isinstance(value, list):
            if texts := [text for text in map(_text, value) if text]:
                found[name] = texts
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if math.isfinite(value):
                found[name] = str(value) if abs(value) >= 2**53 else value if isinstance(value, int) else float(value)
        elif text := _text(value):
            found[name] = text
    return found


def _text(value: Any) -> str:
    """A value as text; empty for what is none."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or isinstance(value, list | Mapping) else " ".join(str(value).split())


def kind_of(value: Value) -> str:
    """Return the kind of a value: text, number, year, date or list."""
    if isinstance(value, list):
        return "list"
    text = value if isinstance(value, str) else str(value)
    if YEAR.fullmatch(text):
        return "year"
    return (
        "number"
        if isinstance(value, int | float) or NUMBER.fullmatch(text)
        else "date"
        if DATE.fullmatch(text)
        else "text"
    )


def type_of(kinds: Iterable[str]) -> FieldType:
    """Return the type of a field whose values are of these kinds: text, number, year, date, list. Years are dates beside dates, and else numbers."""
    seen = {*kinds}
    if "list" in seen:
        return "list"
    return "number" if seen <= {"number", "year"} else "date" if seen <= {"date", "year"} else "text"


def typed(value: Value, kind: FieldType) -> Value:
    """Return a value as one of the type of its field. Raises ValueError for what is none."""
    if kind == "list":
        return value if isinstance(value, list) else [str(value)]
    if isinstance(value, list):
        raise ValueError(f"{value!r} is a list")
    if kind == "number" and isinstance(value, str):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value if kind == "number" else str(value)


def moment(date: str) -> str:
    """Return a date in one form, 2024-05-01T10:30:00 or the first part of it, so that the order of the texts is that of the dates."""
    found = DATE.fullmatch(date)
    if not found:
        return date
    year, month, day, *clock = found.groups()
    return "-".join(filter(None, (year, month, day))) + ("T" + ":".join(filter(None, clock)) if clock[0] else "")
