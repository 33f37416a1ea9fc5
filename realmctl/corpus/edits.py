"""Edits of a corpus: read them from JSON lines, and apply them to an ordered list of documents.

    {"op": "add", "id": "d9", "title": "Vivis Wamley", "text": "A midwife of Saint Tremmouth delivered Vivis Wamley."}
    {"op": "update", "id": "d4", "text": "The new text of the document."}
    {"op": "remove", "title": "Wamley"}

An added document comes last. An updated document keeps its place, its id and, where the edit has none, its title and its `fields`, an object. Line ends of the new text are
kept where the blocks of the former text have line ends.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from realmctl.corpus.document import Document
from realmctl.corpus.fields import NOTHING, Fields, kept
from realmctl.corpus.formats.records import encodable
from realmctl.errors import InputError
from realmctl.inputs.rows import json_value, text_rows

FIELDS = {"add": ("id", "text"), "update": ("text",), "remove": ()}
"""The fields that each operation must have. `update` and `remove` also need an id or a title."""
OPTIONAL = {"add": ("title", "fields"), "update": ("id", "title", "fields"), "remove": ("id", "title")}


@dataclass(frozen=True, slots=True)
class Edit:
    """One line of an edits file. fields: NOTHING itself where it has none. where: its file and line, for messages."""

    op: str
    id: str | None
    title: str | None
    text: str
    fields: Fields
    where: str


def read_edits(path: Path) -> Iterator[Edit]:
    """Yield the edits of a file in order. Raises InputError, which names file and line, for a line that is not an edit."""
    found = False
    for where, line in text_rows(path):
        found = True
        yield _edit(line, where)
    if not found:
        raise InputError(
            f"{path} has no edit. Write one JSON object on each line, such as " + '{"op": "remove", "id": "d4"}.'
        )


def _edit(line: str, where: str) -> Edit:
    record = json_value(line, where)
    op = record.get("op") if isinstance(record, dict) else None
    if not isinstance(op, str) or op not in FIELDS:
        raise InputError(f"{where}: this is not an edit. It needs an op, one of {', '.join(FIELDS)}. Correct the line.")
    allowed = {"op", *FIELDS[op], *OPTIONAL[op]}
    if unknown := sorted(set(record) - allowed):
        raise InputError(
            f"{where}: {op} has no field {', '.join(unknown)}. Its fields are {', '.join(sorted(allowed))}."
        )
    fields = record.get("fields", NOTHING)
    if not isinstance(fields, dict):
        raise InputError(f"{where}: fields are {json.dumps(fields)[:80]}, and an object is needed. Correct the line.")
    values = {name: _text(record[name], name, where) for name in record if name not in ("op", "fields")}
    missing = [name for name in FIELDS[op] if not values.get(name, "").strip()]
    if op != "add" and not (values.get("id") or values.get("title")):
        missing.append("id or title")
    if missing:
        raise InputError(
            f"{where}: {op} needs {' and '.join(missing)}, and an empty one does not count. Correct the line."
        )
    return Edit(
        op,
        values.get("id"),
        values.get("title"),
        values.get("text", ""),
        kept(fields) if fields is not NOTHING else fields,
        where,
    )


def _text(value: object, name: str, where: str) -> str:
    if name == "id" and type(value) is int:
        value = str(value)
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} is {json.dumps(value)[:80]}, and a text is needed. Correct the line.")
    return encodable(value, where)


def apply_edits(titles: Mapping[str, str], edits: Iterable[Edit]) -> dict[str, Document | None]:
    """Apply edits in order.

    Args:
        titles: the titles of the documents of the former blocks by id, in order.
        edits: the edits; each one sees the result of those before it.

    Returns:
        The documents by id, in their new order. None: the document did not change. Their fields are NOTHING itself where they are those of before.

    Raises:
        InputError: an edit names a document that is not there, adds an id that is there, or names a title that several
            documents have.
    """
    found: dict[str, Document | None] = dict.fromkeys(titles)
    ids_by_title: dict[str, dict[str, None]] = {}
    for key, title in titles.items():
        ids_by_title.setdefault(title, {})[key] = None
    for edit in edits:
        if edit.op == "add":
            assert edit.id is not None
            if edit.id in found:
                raise InputError(f"{edit.where}: there is a document {edit.id!r} already. Use update, or another id.")
            key, title = edit.id, edit.title or ""
            fields: Fields = {**edit.fields}
        else:
            key = _named(edit, found, ids_by_title)
            former = found[key]
            title = titles[key] if former is None else former.title
            fields = former.fields if former and edit.fields is NOTHING else edit.fields
            ids_by_title[title].pop(key)
            if edit.id is not None and edit.title is not None:
                title = edit.title
        if edit.op == "remove":
            del found[key]
            continue
        found[key] = Document(key, title, edit.text, fields=fields, where=edit.where)
        ids_by_title.setdefault(title, {})[key] = None
    return found


def _named(edit: Edit, found: Collection[str], ids_by_title: dict[str, dict[str, None]]) -> str:
    """Return the id of the document that an update or a remove names."""
    if edit.id is not None:
        if edit.id not in found:
            raise InputError(
                f"{edit.where}: there is no document with the id {edit.id!r} to {edit.op}. Correct the id."
            )
        return edit.id
    ids = list(ids_by_title.get(edit.title or "", {}))
    if not ids:
        raise InputError(f"{edit.where}: there is no document titled {edit.title!r} to {edit.op}. Correct the title.")
    if len(ids) > 1:
        raise InputError(
            f"{edit.where}: {len(ids)} documents are titled {edit.title!r} (ids {', '.join(ids[:5])}"
            f"{', ...' if len(ids) > 5 else ''}). Name one by its id."
        )
    return ids[0]
