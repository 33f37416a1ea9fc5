"""Small JSON files as dataclasses: one reader, which checks that each field is there and of its type."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from realmctl.errors import InputError, as_realmctl_error, one_line

T = TypeVar("T")
MAX_DESCRIPTION_BYTES = 2**20


def read_as(
    path: Path,
    kind: type[T] | Callable[[Mapping[str, Any]], type[T]],
    what: str,
    remedy: str,
    check: Callable[[T], None] = lambda read: None,
    *,
    whole: bool = False,
) -> T:
    """Read a JSON object as a dataclass.

    A field is a Literal, an int, a float, a str, a bool, None, a list, a tuple of whole numbers, another dataclass, or a union of these.
    The class, and `check`, may check more: their ValueError is the reason that is told.

    Args:
        path: The file.
        kind: The class, or a function that says which by the fields.
        what: What the file describes, for the message, such as `an index`.
        remedy: What to do about a damaged file; a sentence.
        check: Raises ValueError for an object that is not as it must be in a file.
        whole: Whether the object has each field of the class and no other, as an object inside it always does.
            Otherwise fields with a default may be missing, and others are ignored.

    Raises:
        InputError: The file is missing, too large, or no JSON object; a field is missing or has another type; or the class refuses it.
    """
    try:
        if not path.is_file() or path.stat().st_size > MAX_DESCRIPTION_BYTES:
            raise ValueError(f"it is no regular file of at most {MAX_DESCRIPTION_BYTES:,} bytes")
        table = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(table, dict):
            raise ValueError("it is not a JSON object")
        chosen: type[T] = kind if isinstance(kind, type) else kind(table)
        read = object_of(chosen, table, whole)
        check(read)
        return read
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} does not describe {what} ({one_line(error)}). {remedy}"
        ) from None


def object_of(kind: type[T], table: Mapping[str, Any], whole: bool = True) -> T:
    """Return a JSON object as a dataclass, as `read_as` does. A field that came after a release (metadata `after`) may be absent. Raises ValueError."""
    hints, values = typing.get_type_hints(kind), {}
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if whole and (others := table.keys() - fields.keys()):
        raise ValueError(f"it has {_short(min(others))}, which is none of its fields")
    for name, field in fields.items():
        if name in table:
            values[name] = _value(name, hints[name], table[name])
        elif (whole and "after" not in field.metadata) or field.default is dataclasses.MISSING:
            raise ValueError(f"it lacks {name}")
    return kind(**values)


def _value(name: str, hint: Any, value: Any) -> Any:
    """The value of a field as its type says. Raises ValueError."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if type(value) in arguments:
            return value
        for each in arguments:
            if typing.get_origin(each) or dataclasses.is_dataclass(each):
                return _value(name, each, value)
        wanted = " or ".join("null" if each is type(None) else each.__name__ for each in arguments)
        raise ValueError(f"{name} is {_short(value)}, where a value of type {wanted} is needed")
    if origin is Literal:
        if not any(value == each and type(value) is type(each) for each in arguments):
            raise ValueError(f"{name} is {_short(value)}, where one of {', '.join(map(str, arguments))} is needed")
        return value
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise ValueError(f"{name} is {_short(value)}, where an object is needed")
        try:
            return object_of(typing.cast(type[Any], hint), value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if origin is tuple:
        if not isinstance(value, list) or not all(type(each) is int and 0 <= each < 2**31 for each in value):
            raise ValueError(f"{name} is {_short(value)}, where a list of whole numbers is needed")
        return tuple(value)
    if type(value) is not (plain := origin or hint):
        raise ValueError(f"{name} is {_short(value)}, where a value of type {plain.__name__} is needed")
    return value


def _short(value: Any) -> str:
    return repr(value)[:80]
