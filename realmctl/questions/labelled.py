"""Read questions with labelled passages: the training files of DPR and of Tevatron.

DPR's (github.com/facebookresearch/DPR, biencoder-*.json) is a JSON list with `positive_ctxs` and `hard_negative_ctxs`.
Tevatron's (github.com/texttron/tevatron) has JSON lines, or rows of Parquet, with `positive_passages` and
`negative_passages`; in version 2 `positive_document_ids` and `negative_document_ids` name passages of a corpus. DPR's list has tens of gigabytes as Python objects, so it is read one record at a time.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.dataset_folders import only_split
from realmctl.inputs.json_lines import json_value
from realmctl.inputs.rows import is_columnar, rows

QUESTIONS = ("question", "query", "query_text")
POSITIVES = ("positive_ctxs", "positive_passages", "positive_document_ids")
NEGATIVES = ("hard_negative_ctxs", "negative_passages", "negative_document_ids")
IDS = ("docid", "passage_id", "psg_id", "_id", "id")
MAX_RECORD_CHARS = 16 * 2**20
GAP = re.compile(r"[\s,]*")


class LabelledPassage(NamedTuple):
    """A passage; its title may be empty. If only its id is known, title and text are empty."""

    title: str
    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, the passages that answer it, and passages that look as if they did."""

    question: str
    positives: tuple[LabelledPassage, ...]
    negatives: tuple[LabelledPassage, ...]


def read_labelled(path: Path) -> Iterator[LabelledQuestion]:
    """Yield the questions of a training file, or of a dataset folder with one split, in its order.

    A list of passages may be empty. A passage that is named by its id alone has no text.

    Raises:
        InputError: the file is neither DPR's nor Tevatron's, or a record is malformed. The message names the record.
    """
    for where, record in _records(path):
        question = _first(record, QUESTIONS)
        if not isinstance(question, str) or not question.strip() or _first(record, POSITIVES) is None:
            raise InputError(
                f"{where}: this is not a question with labelled passages. It needs {' or '.join(QUESTIONS)} and "
                f"{' or '.join(POSITIVES)}, and has {', '.join(record) or 'nothing'}. Queries and judgements in files of their own are "
                "read with --qrels and --corpus."
            )
        yield LabelledQuestion(question, _passages(record, POSITIVES, where), _passages(record, NEGATIVES, where))


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _passages(record: Mapping[str, Any], names: tuple[str, ...], where: str) -> tuple[LabelledPassage, ...]:
    found = _first(record, names)
    try:
        passages = [_passage(item) for item in found or ()]
        "".join(part for passage in passages for part in passage).encode()
    except (TypeError, KeyError, AttributeError, UnicodeEncodeError) as error:
        raise InputError(
            f"{where}: {' or '.join(names)} is not a list of passages with a text ({type(error).__name__}: {error}). "
            "Correct or remove the record."
        ) from None
    return tuple(passage for passage in passages if passage.text.strip() or passage.id)


def _passage(item: Any) -> LabelledPassage:
    """Return a passage with its text, or with its id if it has no text. Raises KeyError if it has neither."""
    if isinstance(item, str | int):
        return LabelledPassage("", "", str(item))
    if item.get("text") is None and (identity := _first(item, IDS)) is not None:
        return LabelledPassage("", "", str(identity))
    return LabelledPassage(item.get("title") or "", item["text"])


def _records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (file and record, record)."""
    if path.is_dir():
        for file in only_split(path):
            yield from _records(file)
        return
    start = streams.head(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    if is_columnar(start):
        found: Iterator[Any] = rows(path, (*QUESTIONS, *POSITIVES, *NEGATIVES), needed=POSITIVES)
    else:
        found = json_list_items(path) if start.startswith(b"[") else _lines(path)
    for number, record in enumerate(found, start=1):
        if not isinstance(record, Mapping):
            raise InputError(f"{path}, record {number}: a JSON object is expected. Correct or remove the record.")
        yield f"{path}, record {number}", record


def _lines(path: Path) -> Iterator[Any]:
    return (json_value(line, f"{path}:{number}") for number, line in streams.lines(path) if line.strip())


def json_list_items(path: Path) -> Iterator[Any]:
    """Yield the items of a file that holds a JSON list. Only a few of them are in memory.

    Raises InputError for a damaged list, and for an item of more than 16 MiB.
    """
    parse, text, least, opened = json.JSONDecoder().raw_decode, "", 0, False
    try:
        for piece in codecs.iterdecode(streams.decompressed(path), "utf-8-sig"):
            text += piece
            if len(text) < least:
                continue
            place, opened = 0 if opened else text.find("[") + 1, True
            while item := _whole_value(parse, text, _end_of_gap(text, place)):
                value, place = item
                yield value
            text = text[place:]
            least = 2 * len(text)  # so that the time stays linear in the length of a record
            if len(text) > MAX_RECORD_CHARS:
                raise ValueError(f"a record of more than {MAX_RECORD_CHARS // 2**20} MiB, or one that is not JSON")
        place = _end_of_gap(text, 0)
        while text[place : place + 1] != "]":
            value, end = parse(text, place)
            yield value
            place = _end_of_gap(text, end)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this JSON list is damaged ({error}). Get the file again.") from None


def _end_of_gap(text: str, place: int) -> int:
    return GAP.match(text, place).end()  # type: ignore[union-attr]


def _whole_value(parse: Any, text: str, place: int) -> tuple[Any, int] | None:
    """Return the value that begins at `place` and its end; None if the text may hold only a part of it."""
    try:
        value, end = parse(text, place)
    except ValueError:
        return None
    return (value, end) if end < len(text) else None
