"""The files of a scores artifact: what `eval-em` writes, and a reader that checks every field that a report uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import NotRequired, TypedDict, cast

from realmctl.artifacts import Artifact
from realmctl.errors import InputError

Check = Callable[[object], bool]
MISSING = object()


class Context(TypedDict):
    """A retrieved block of retrieved.json, and whether it holds an answer: as words (DPR), as raw text (ORQA), by document."""

    id: str
    title: str
    text: str
    score: float
    has_answer: bool
    has_answer_substring: NotRequired[bool]
    has_provenance: NotRequired[bool]


class Entry(TypedDict):
    """A question with the blocks retrieved for it, best first."""

    question: str
    answers: list[str]
    ctxs: list[Context]


class Prediction(TypedDict):
    """A line of predictions.jsonl. `id` tells questions with one text apart."""

    id: NotRequired[str]
    question: str
    prediction: str


class Evidence(TypedDict):
    """A line of evidence.jsonl: correct answers, how many blocks were read, and the prediction's score and place.

    Its place is the rank of its block, from 1, and its character offsets there.
    """

    answers: list[str]
    read: NotRequired[int]
    score: NotRequired[float]
    rank: NotRequired[int | None]
    start: NotRequired[int]
    end: NotRequired[int]


def _is_text(value: object) -> bool:
    """Whether the value is a string that can be written as UTF-8. JSON can hold half a surrogate pair, which cannot."""
    return isinstance(value, str) and value == value.encode(errors="ignore").decode()


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_place(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_rank(value: object) -> bool:
    return value is None or (_is_place(value) and value != 0)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_contexts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


RETRIEVED, PREDICTIONS, EVIDENCE = "retrieved.json", "predictions.jsonl", "evidence.jsonl"
CONTEXT: Mapping[str, Check] = {"title": _is_text, "text": _is_text, "score": _is_number, "has_answer": _is_flag}
NEEDED: Mapping[str, Mapping[str, Check]] = {
    RETRIEVED: {"question": _is_text, "answers": _are_texts, "ctxs": _is_contexts},
    PREDICTIONS: {"question": _is_text, "prediction": _is_text},
    EVIDENCE: {"answers": _are_texts},
}
OPTIONAL: Mapping[str, Check] = {"rank": _is_rank, "read": _is_place}
"""Fields of evidence.jsonl."""


def entries(scores: Artifact) -> Iterator[Entry]:
    """Yield the retrieved blocks of each question (DPR's format, one entry a line), in constant memory.

    Where nothing was retrieved, yield the questions without blocks.
    """
    if not scores.has(RETRIEVED):
        for one, two in zip(predictions(scores), evidence(scores), strict=False):
            yield Entry(question=one["question"], answers=two["answers"], ctxs=[])
        return
    path = scores.file(RETRIEVED)
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if (text := line.strip().strip(",")) not in ("", "[", "]", "[]"):
                yield cast(Entry, _parsed(text, RETRIEVED, f"{path}:{number}"))


def predictions(scores: Artifact) -> list[Prediction]:
    """Read predictions.jsonl. Returns an empty list where the artifact does not have it."""
    return cast(list[Prediction], _records(scores, PREDICTIONS))


def evidence(scores: Artifact) -> list[Evidence]:
    """Read evidence.jsonl. Returns an empty list where the artifact does not have it."""
    return cast(list[Evidence], _records(scores, EVIDENCE))


def _records(scores: Artifact, name: str) -> list[dict[str, object]]:
    if not scores.has(name):
        return []
    path = scores.file(name)
    with path.open(encoding="utf-8", errors="replace") as lines:
        return [_parsed(line, name, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _parsed(text: str, name: str, place: str) -> dict[str, object]:
    """Parse one line of the file `name`. Raises InputError that says where it is and which field is wrong."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not valid JSON ({error}). Make the scores again.") from None
    if not isinstance(value, dict):
        raise InputError(f"{place}: {type(value).__name__} where an object is expected. Make the scores again.")
    _check(value, NEEDED[name], place, needed=True)
    for context in value["ctxs"] if name == RETRIEVED else ():
        _check(context, CONTEXT, f"{place}: a block", needed=True)
    if name == EVIDENCE:
        _check(value, OPTIONAL, place, needed=False)
        if value.get("rank"):
            _check(value, {"start": _is_place, "end": _is_place}, place, needed=True)
    return value


def _check(value: Mapping[str, object], fields: Mapping[str, Check], place: str, *, needed: bool) -> None:
    for name, is_sound in fields.items():
        found = value.get(name, MISSING)
        if found is MISSING and needed:
            raise InputError(f"{place}: the field '{name}' is missing. Make the scores again.")
        if found is not MISSING and not is_sound(found):
            raise InputError(f"{place}: the field '{name}' is {str(found)[:60]!r}. Make the scores again.")
