"""Read JSON that is no JSON lines: a list, objects over several lines, a list under a name such as `data`, and objects by their ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document
from realmctl.corpus.formats.records import FieldNames, document_of, heads
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.rows import Row, WrittenFloat, json_list, parse_json

LIST = re.compile(rb"\[\s*\{")
BLANK = re.compile(r"[\s,]*")


def is_json(file: CorpusFile, start: bytes) -> bool:
    """Whether a text is such JSON: not lines of JSON, and not the layout of SQuAD, which have readers of their own."""
    if b'"paragraphs"' in start:
        return False
    if start[:1] != b"{":
        return LIST.match(start) is not None
    line, newline, _ = start.partition(b"\n")
    try:
        first = parse_json(line)
    except json.JSONDecodeError as error:
        return bool(newline) and error.pos >= len(line.decode(errors="replace").rstrip())  # it goes on in the next line
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and _held(first, FieldNames.of(file.settings)) is not None


def _held(value: Mapping[str, Any], names: FieldNames) -> list[tuple[str | None, dict[str, Any]]] | None:
    """The documents that an object holds, each with its id where that is its name; None for an object that is a document."""

    texts = {*names.texts, *heads(names.texts)}

    def are_documents(values: list[Any]) -> bool:
        return bool(values) and all(isinstance(each, dict) for each in values) and bool({*values[0]} & texts)

    if {*value} & texts:
        return None
    if are_documents([*value.values()]):
        return [*value.items()]
    found = next((each for each in value.values() if isinstance(each, list) and are_documents(each)), None)
    return None if found is None else [(None, each) for each in found]


def read_json(file: CorpusFile) -> Iterator[Document]:
    """Yield the objects with a text as documents. Raises InputError, with file and line, for what is no JSON or no document."""
    names = FieldNames.of(file.settings)
    for number, row in enumerate(_rows(file, names), 1):
        names.require_in(row.fields, row.where)
        row = row._replace(
            fields={**row.fields, **{name: _joined(row.fields[name]) for name in names.texts if name in row.fields}}
        )
        yield document_of(row, f"{file.name}-{number}", names)


def _joined(text: Any) -> Any:
    """The text of pieces of which some are objects, such as the links in a message of Telegram; anything else as it is."""
    if isinstance(text, list) and any(isinstance(each, dict) and isinstance(each.get("text"), str) for each in text):
        return "".join(
            each if isinstance(each, str) else str(each.get("text", ""))
            for each in text
            if isinstance(each, str | dict)
        )
    return text


def _rows(file: CorpusFile, names: FieldNames) -> Iterator[Row]:
    if LIST.match(streams.head(file.path).lstrip(b"\xef\xbb\xbf \t\r\n")):
        yield from json_list(file.path)
        return
    text = streams.whole_text(file.path, MAX_TEXT_FILE)
    parse, place, line = json.JSONDecoder(parse_float=WrittenFloat, parse_constant=lambda _: None).raw_decode, 0, 1
    while (begin := BLANK.match(text, place).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", place, begin)
        where = f"{file.path}:{line}"
        try:
            value, place = parse(text, begin)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not valid JSON ({error}). Correct or remove the object.") from None
        line += text.count("\n", begin, place)
        if not isinstance(value, dict):
            raise InputError(
                f"{where}: a JSON {type(value).__name__}, but an object is expected. Correct or remove it."
            )
        held = _held(value, names)
        for name, fields in [(None, value)] if held is None else held:
            if not isinstance(fields, dict):
                raise InputError(f"{where}: {name!r} is no object. Correct or remove it.")
            own = {} if name is None or {*fields} & {*names.ids} else {"id": name}
            yield Row(where if name is None else f"{where}, {name!r}", line, {**own, **fields})
