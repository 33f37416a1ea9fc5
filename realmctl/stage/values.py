"""A value as the type of its field: the one check behind Python calls and pipeline files."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

from realmctl.errors import ConfigError


def typed(hint: Any, value: Any, where: str) -> Any:
    """`value` as `hint` says: int, float, bool, str, Path, Literal, a tuple of these, or these or None.

    A tuple of a Literal is a choice among its names.

    Numbers and truth values may be spelled (YAML 1.1 reads 3e-5 as text). Raises ConfigError naming `where`.
    """
    if NoneType in typing.get_args(hint):
        (hint,) = set(typing.get_args(hint)) - {NoneType}
        if value is None:
            return None
    if typing.get_origin(hint) is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        (inner, *_) = typing.get_args(hint)
        if typing.get_origin(inner) is typing.Literal:
            return _chosen(inner, items, where)
        return tuple(typed(inner, item, where) for item in items)
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise ConfigError(f"{where}: {value!r} is none of {', '.join(map(str, typing.get_args(hint)))}.")
        return value
    read, word = READERS[hint]
    try:
        return read(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{where}: {value!r} is not {word}.") from None


def _chosen(hint: Any, items: Sequence[Any], where: str) -> tuple[Any, ...]:
    """Some of a Literal's names, each once and in its order, however they were given: one by one or with commas."""
    names = [typed(hint, name.strip(), where) for item in items for name in str(item).split(",")]
    return tuple(name for name in typing.get_args(hint) if name in names)


def _bool(value: Any) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError
    return str(value).lower() == "true"


def _float(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not isinstance(value, Real | str) or not math.isfinite(number):
        raise ValueError
    return number


def _int(value: Any) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if not _float(value).is_integer():
        raise ValueError
    return int(_float(value))


def _str(value: Any) -> str:
    if isinstance(value, bool | list | dict | tuple | NoneType):
        raise ValueError
    return str(value)


READERS: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    bool: (_bool, "true or false"),
    int: (_int, "a whole number"),
    float: (_float, "a finite number"),
    str: (_str, "a text"),
    Path: (Path, "a path"),
}
