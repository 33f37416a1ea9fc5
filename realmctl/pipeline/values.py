"""Conversion of a value to the type of its field, for Python calls and for pipeline files."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

from realmctl.errors import ConfigError

LARGEST_INT = 2**63 - 1


def typed(hint: object, value: object, where: str) -> Any:
    """Convert `value` to the type `hint`.

    Numbers and booleans may be text, because a pipeline file gives every number as text.

    Args:
        hint: int, float, bool, str, Path or a Literal; a tuple of one of these; or one of these or None. A tuple of a Literal
            is a choice of several of its names.
        value: The value.
        where: The flag or the position in a file, for the message.

    Raises:
        ConfigError: The value does not have this type.
    """
    if NoneType in typing.get_args(hint):
        (hint,) = set(typing.get_args(hint)) - {NoneType}
        if value is None:
            return None
    if typing.get_origin(hint) is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        (inner, *_) = typing.get_args(hint)
        if typing.get_origin(inner) is typing.Literal:
            return _choices(inner, items, where)
        return tuple(typed(inner, item, where) for item in items)
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise ConfigError(f"{where}: {value!r} is not one of {', '.join(map(str, typing.get_args(hint)))}.")
        return value
    convert, description = CONVERTERS[hint]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{where}: {value!r} is not {description}.") from None


def _choices(hint: object, items: Sequence[object], where: str) -> tuple[Any, ...]:
    """Return some names of a Literal, each once and in the Literal's order. They may come one by one or with commas."""
    names = [typed(hint, name.strip(), where) for item in items for name in str(item).split(",")]
    return tuple(name for name in typing.get_args(hint) if name in names)


def _bool(value: object) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError
    return str(value).lower() == "true"


def _float(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not isinstance(value, Real | str) or not math.isfinite(number):
        raise ValueError
    return number


def _int(value: object) -> int:
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else _int_of_text(value)
    if abs(number) > LARGEST_INT:
        raise ValueError
    return number


def _int_of_text(value: object) -> int:
    """Convert text or a float. Digits are converted exactly, `1e5` through a float."""
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
        return int(value)
    if not _float(value).is_integer():
        raise ValueError
    return int(_float(value))


def _str(value: object) -> str:
    if isinstance(value, bool | list | dict | tuple | NoneType):
        raise ValueError
    return str(value)


CONVERTERS: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    bool: (_bool, "true or false"),
    int: (_int, "a whole number of at most 63 bits"),
    float: (_float, "a finite number"),
    str: (_str, "a text"),
    Path: (Path, "a path"),
}
