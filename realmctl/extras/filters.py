"""The language of filters: which blocks may be hits, by the fields of their documents.

    date >= 2024 and (source == "handbook" or tags contains "money") and not draft == true

A comparison is a field, an operator and a value. They are joined by `and`, `or`, `not` and parentheses; `and` binds more tightly than `or`.
== != < <= > >=   of numbers, dates and texts. A date is compared as far as it is written: 2024-05 is each day of May.
in [a, b]         the value is one of these; of a list, any of its values.
contains          a text holds this text, or a list this value.
A block without the field passes no comparison, and so it passes `!=` and `not`.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.columns import Column, Columns
from realmctl.corpus.fields import FieldType, moment
from realmctl.errors import ConfigError
from realmctl.index.protocol import RowIds
from realmctl.retrieval.search.filters import BlockFilter

OFFERS = {"realmctl.filters": {"expression": "realmctl.extras.filters:Filter"}}

MOST_CHARACTERS = 4_000
MOST_VALUES = 200
"""Values that a filter compares with."""
MOST_READ = 5_000_000
"""Texts that a filter may read, a field counted once for each `contains` and each order of texts: a second of one core. All else is looked up."""
DEEPEST = 32
"""Parentheses and `not` within each other."""
ORDERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TOKEN = re.compile(
    r"""(?P<sign>==|!=|<=|>=|[<>()\[\],])|(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<name>[^`]+)`"""
    r"|(?P<date>[0-9]{4}-[0-9]{2}(?:-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?)?(?![\w.:-]))"
    r"|(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?(?![\w.:-]))|(?P<word>[^\W\d][\w.-]*)",
    re.DOTALL,
)
BLANK = re.compile(r"\s*")
DATE = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?)?)?")

Mask = NDArray[np.bool_]
Test = Callable[[Mapping[str, Column]], Mask]


class Token(NamedTuple):
    """A part of a filter: what it is (`TOKEN`, or `end`), its text as it is meant, and its place from 1."""

    kind: str
    text: str
    place: int


class Filter(BlockFilter):
    """A filter, read for blocks with these fields.

    Raises ConfigError for what is no filter, with the place, for a field that the blocks do not have, and for a value of another type.
    """

    def __init__(self, text: str, types: Mapping[str, FieldType]) -> None:
        if len(text) > MOST_CHARACTERS:
            raise ConfigError(f"the filter has {len(text):,} characters, and at most {MOST_CHARACTERS:,} are read.")
        self.text, self.types, self.names, self._reads = text, types, set[str](), list[str]()
        self._tokens, self._at, self._values, self._depth = _tokens(text), 0, 0, 0
        self._test = self._any()
        if self._next.kind != "end":
            raise self._wrong("and, or, or the end")

    def rows(self, columns: Columns) -> RowIds:
        """Return the rows of the blocks that pass, rising, int64. Raises ConfigError for a filter that would read more than `MOST_READ` texts."""
        found = columns.of(self.names)
        if (reads := sum(len(found[name].values) for name in self._reads)) > MOST_READ:
            name, count = Counter(self._reads).most_common(1)[0]
            raise ConfigError(
                f"the filter {self.text[:200]!r} reads {reads:,} texts, {count} times the {len(found[name].values):,} different ones of {name}, and at "
                f"most {MOST_READ:,} are read. Leave out some of `contains`, < and > of texts; == and `in` read none."
            )
        return np.flatnonzero(self._test(found))

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _is_word(self, word: str) -> bool:
        return self._next.kind == "word" and self._next.text.lower() == word

    def _is_sign(self, sign: str) -> bool:
        return self._next[:2] == ("sign", sign)

    def _wrong(self, expected: str) -> ConfigError:
        token = self._next
        found = "the end" if token.kind == "end" else repr(token.text)
        return ConfigError(
            f"the filter {self.text[:200]!r}: at character {token.place}, {expected} is expected, and there is {found}."
        )

    def _any(self) -> Test:
        tests = [self._all()]
        while self._is_word("or"):
            self._take()
            tests.append(self._all())
        return _joined(tests, np.logical_or)

    def _all(self) -> Test:
        tests = [self._one()]
        while self._is_word("and"):
            self._take()
            tests.append(self._one())
        return _joined(tests, np.logical_and)

    def _one(self) -> Test:
        if not (is_not := self._is_word("not")) and not self._is_sign("("):
            return self._comparison()
        self._take()
        self._depth += 1
        if self._depth > DEEPEST:
            raise ConfigError(
                f"the filter {self.text[:200]!r} has more than {DEEPEST} parentheses or `not` within each other."
            )
        inner = self._one() if is_not else self._any()
        self._depth -= 1
        if is_not:
            return lambda columns: ~inner(columns)
        if not self._is_sign(")"):
            raise self._wrong("and, or, or )")
        self._take()
        return inner

    def _comparison(self) -> Test:
        if self._next.kind not in ("word", "name"):
            raise self._wrong("a field, not or (")
        name = self._take().text.lower()
        name = "document" if name == "path" and name not in self.types else name
        if name not in self.types:
            known = ", ".join(f"{each} ({kind})" for each, kind in sorted(self.types.items()))
            raise ConfigError(f"the filter names {name!r}, which the blocks do not have. They have {known}.")
        self.names.add(name)
        how, is_not = self._next.text.lower(), self._is_word("not")
        if is_not:
            self._take()
            how = self._next.text.lower()
        if not (self._is_word("in") or (not is_not and (self._is_word("contains") or how in (*ORDERS, "==", "!=")))):
            raise self._wrong("in" if is_not else f"one of ==, !=, {', '.join(ORDERS)}, in, contains")
        self._take()
        values = self._several(name) if how == "in" else [self._value(name)]
        return self._compared(name, how, values, is_not or how == "!=")

    def _several(self, name: str) -> list[str | float]:
        end = "]" if self._is_sign("[") else ")" if self._is_sign("(") else ""
        if not end:
            raise self._wrong("[ and values with commas between them")
        values = list[str | float]()
        while not values or self._is_sign(","):
            self._take()
            values.append(self._value(name))
        if not self._is_sign(end):
            raise self._wrong(f", or {end}")
        self._take()
        return values

    def _value(self, name: str) -> str | float:
        """A value as one of the type of its field."""
        kind, token = self.types[name], self._next
        self._values += 1
        if self._values > MOST_VALUES:
            raise ConfigError(f"the filter {self.text[:200]!r} compares with more than {MOST_VALUES} values.")
        is_truth = token.kind == "word" and token.text.lower() in ("true", "false")
        if token.kind not in ("quoted", "date", "number") and not is_truth:
            raise self._wrong("a number, a date, or a text in quotes")
        self._take()
        what = {"quoted": "text", "word": "text"}.get(token.kind, token.kind)
        if kind == "number" and what == "number":
            return float(token.text)
        if kind == "date" and DATE.fullmatch(moment(token.text)):
            return moment(token.text)
        if kind == "list" or (kind == "text" and what == "text"):
            return token.text.lower() if is_truth else token.text
        advice = f"Write it in quotes: {token.text!r}." if kind == "text" else "Correct one of them."
        raise ConfigError(
            f"the filter compares {name}, a {kind}, with {token.text!r}, a {what}, at character {token.place}. {advice}"
        )

    def _compared(self, name: str, how: str, values: list[str | float], is_not: bool) -> Test:
        kind, first = self.types[name], values[0]
        if how == "contains" and kind in ("number", "date"):
            raise ConfigError(f"the filter asks what {name} contains, which is a {kind}. Compare it with == or <=.")
        if kind == "list" and how not in ("contains", "in"):
            raise ConfigError(f"the filter compares {name}, a list, by {how}. Write {name} contains {first!r}.")
        is_one_of = how in ("in", "==", "!=")
        if kind == "date":
            order = np.equal if is_one_of else ORDERS[how]
            tests = [_of_date(name, order, str(value).encode()) for value in values]
            found = _joined(tests, np.logical_or)
        elif is_one_of or kind == "list":
            found = lambda columns: columns[name].is_one_of(values)  # noqa: E731
        elif how == "contains":
            self._reads.append(name)
            found = lambda columns: columns[name].where(lambda value: first in value)  # type: ignore[operator]  # noqa: E731
        elif kind == "number":
            found = lambda columns: columns[name].which(ORDERS[how](columns[name].floats, first))  # noqa: E731
        else:
            self._reads.append(name)
            found = lambda columns: columns[name].where(lambda value: ORDERS[how](value, first))  # noqa: E731
        return (lambda columns: ~found(columns)) if is_not else found


def _joined(tests: Sequence[Test], join: np.ufunc) -> Test:
    """Whether blocks pass all tests, or any, one after the other."""
    if len(tests) == 1:
        return tests[0]

    def test(columns: Mapping[str, Column]) -> Mask:
        found = tests[0](columns)
        for each in tests[1:]:
            join(found, each(columns), out=found)
        return found

    return test


def _of_date(name: str, order: Callable[[Any, Any], Any], bound: bytes) -> Test:
    """Whether dates, as far as the bound is written, stand so to it."""

    def test(columns: Mapping[str, Column]) -> Mask:
        column = columns[name]
        return column.which(order(column.moments.astype(f"S{len(bound)}"), bound))

    return test


def _tokens(text: str) -> list[Token]:
    found, place = list[Token](), BLANK.match(text).end()  # type: ignore[union-attr]
    while place < len(text):
        token = TOKEN.match(text, place)
        if token is None or token.lastgroup is None:
            hint = " Two equal signs compare: ==." if text[place] == "=" else ""
            raise ConfigError(
                f"the filter {text[:200]!r}: at character {place + 1}, {text[place]!r} is not understood.{hint}"
            )
        own = token[token.lastgroup]
        own = re.sub(r"\\(.)", r"\1", own[1:-1], flags=re.DOTALL) if token.lastgroup == "quoted" else own
        found.append(Token(token.lastgroup, own, place + 1))
        place = BLANK.match(text, token.end()).end()  # type: ignore[union-attr]
    return [*found, Token("end", "", len(text) + 1)]
