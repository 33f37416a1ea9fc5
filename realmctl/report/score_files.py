"""The files of a scores artifact, read line by line. Every field that a report uses is checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.errors import InputError

Check = Callable[[Any], bool]
MISSING = object()


def _is_text(value: Any) -> bool:
    """Whether the value is a string that can be written as UTF-8. JSON can hold half a surrogate pair, which cannot."""
    return isinstance(value, str) and value == value.encode(errors="ignore").decode()


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_place(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_rank(value: Any) -> bool:
    return value is None or (_is_place(value) and value > 0)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_contexts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


CONTEXT: Mapping[str, Check] = {"title": _is_text, "text": _is_text, "score": _is_number, "has_answer": _is_flag}
NEEDED: Mapping[str, Mapping[str, Check]] = {
    "retrieved.json": {"question": _is_text, "answers": _are_texts, "ctxs": _is_contexts},
    "predictions.jsonl": {"question": _is_text, "prediction": _is_text},
    "evidence.jsonl": {"answers": _are_texts},
}
OPTIONAL: Mapping[str, Mapping[str, Check]] = {
    "retrieved.json": {},
    "predictions.jsonl": {},
    "evidence.jsonl": {"rank": _is_rank, "read": _is_place},
}


def entries(scores: Artifact) -> Iterator[dict[str, Any]]:
    """Yield the retrieved blocks of each question (DPR's format, one entry a line), in constant memory.

    Where nothing was retrieved, yield the questions without blocks.
    """
    if not scores.has("retrieved.json"):
        both = zip(records(scores, "predictions.jsonl"), records(scores, "evidence.jsonl"), strict=False)
        yield from ({"question": one["question"], "answers": two["answers"], "ctxs": []} for one, two in both)
        return
    path = scores.file("retrieved.json")
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if (text := line.strip().strip(",")) not in ("", "[", "]", "[]"):
                yield _parsed(text, "retrieved.json", f"{path}:{number}")


def records(scores: Artifact, name: str) -> list[dict[str, Any]]:
    """Read a file of JSON lines. Returns an empty list where the artifact does not have it."""
    if not scores.has(name):
        return []
    path = scores.file(name)
    with path.open(encoding="utf-8", errors="replace") as lines:
        return [_parsed(line, name, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _parsed(text: str, name: str, place: str) -> dict[str, Any]:
    """Parse one line of the file `name`. Raises InputError that says where it is and which field is wrong."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not valid JSON ({error}). Make the scores again.") from None
    if not isinstance(value, dict):
        raise InputError(f"{place}: {type(value).__name__} where an object is expected. Make the scores again.")
    _check(value, NEEDED[name], place, needed=True)
    _check(value, OPTIONAL[name], place, needed=False)
    for context in value["ctxs"] if name == "retrieved.json" else ():
        _check(context, CONTEXT, f"{place}: a block", needed=True)
    if value.get("rank") and name == "evidence.jsonl":
        _check(value, {"start": _is_place, "end": _is_place}, place, needed=True)
    return value


def _check(value: Mapping[str, Any], fields: Mapping[str, Check], place: str, *, needed: bool) -> None:
    for name, is_sound in fields.items():
        found = value.get(name, MISSING)
        if found is MISSING and needed:
            raise InputError(f"{place}: the field '{name}' is missing. Make the scores again.")
        if found is not MISSING and not is_sound(found):
            raise InputError(f"{place}: the field '{name}' is {str(found)[:60]!r}. Make the scores again.")
