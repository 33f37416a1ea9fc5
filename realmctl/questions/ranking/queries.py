"""Read queries: the texts to search for, with their ids and without answers.

JSON lines, Parquet and Arrow hold the text under `question`, `query`, `text` or another name of question files (BEIR's queries.jsonl has
`_id` and `text`). A table of two columns holds an id and the text (MS MARCO's queries.tsv). Every other file is read as
a question set (`question_formats`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realmctl.errors import InputError
from realmctl.inputs.delimited import header, table
from realmctl.inputs.json_lines import json_object
from realmctl.inputs.rows import is_columnar, rows
from realmctl.inputs.streams import head, lines
from realmctl.questions.question_formats import ID_FIELDS, QUESTION_FIELDS, parse_questions
from realmctl.questions.ranking.beir import queries_file

TEXT_FIELDS = (*QUESTION_FIELDS, "text")
TEXT_COLUMNS = tuple(name.lower() for name in TEXT_FIELDS)
QUERY_ID_FIELDS = ("_id", *ID_FIELDS, "query_id", "query-id")
HEADERS = {"id", "qid", "query_id", "query-id", "_id"}
QRELS_HEADER = "corpus-id"
ANSWER_LIST = re.compile(r"\"?\[.*\]\"?")


@dataclass(frozen=True, slots=True)
class Query:
    """A query. Queries without an id in their file are numbered from 1, as questions are."""

    id: str
    text: str


def read_queries(path: Path) -> Iterator[Query]:
    """Yield the queries of a file, plain or compressed, or of a BEIR folder, in order. A repeated query is left out.

    Raises:
        InputError: a record is malformed, one id has two different texts, or the file has no queries.
    """
    path = queries_file(path)
    seen: dict[str, int] = {}
    for number, (place, name, text) in enumerate(_records(path), start=1):
        query = Query(name.strip() or str(number), text)
        _require_text(f"{path}:{place}", query)
        if query.id not in seen:
            seen[query.id] = hash(query.text)
            yield query
        elif seen[query.id] != hash(query.text):
            raise InputError(
                f"{path}:{place}: an earlier query has the same id {query.id!r} and another text. Give every query an "
                "id of its own."
            )
    if not seen:
        raise InputError(f"{path} holds no query. Is this the right file?")


def _require_text(where: str, query: Query) -> None:
    try:
        f"{query.id}{query.text}".encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: not text ({error.reason}). Correct or remove it.") from None
    if not query.text.strip():
        raise InputError(f"{where}: the query {query.id!r} has no text. Correct or remove it.")


def _records(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (line or record, id or "", text) of each query."""
    if path.is_dir():
        return ((item.place, item.id, item.question) for item in parse_questions(path)[1])
    if is_columnar(head(path, 16)):
        found = enumerate(rows(path, (*TEXT_FIELDS, *QUERY_ID_FIELDS), needed=TEXT_FIELDS), start=1)
        return ((f"row {number}", *_named(record, f"{path}, row {number}")) for number, record in found)
    first = head(path).decode("utf-8-sig", errors="replace").lstrip().partition("\n")[0].rstrip("\r")
    columns = first.split("\t")
    if QRELS_HEADER in columns:
        raise InputError(f"{path} holds relevance judgements (qrels), not queries. Name the file of queries.")
    names = {*header(first)}
    if names & {*TEXT_COLUMNS} and names & HEADERS:
        return ((str(number), *_named(record, f"{path}:{number}")) for number, record in table(path)[1])
    if _is_record(first):
        return ((str(number), *_of_record(path, number, line)) for number, line in lines(path) if line.strip())
    if len(columns) == 2 and not first.startswith(("[", "{")) and not ANSWER_LIST.fullmatch(columns[1].strip()):
        skip = 1 if columns[0].strip().lower() in HEADERS else 0
        pairs = ((number, line) for number, line in lines(path) if line.strip() and number > skip)
        return ((str(number), *_of_row(path, number, line)) for number, line in pairs)
    return ((item.place, item.id, item.question) for item in parse_questions(path)[1])


def _is_record(line: str) -> bool:
    """Return whether a line is one record, and not a whole document such as SQuAD's."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, Mapping) and not any(isinstance(found.get(name), list) for name in ("data", "Data"))


def _of_record(path: Path, number: int, line: str) -> tuple[str, str]:
    return _named(json_object(line, f"{path}:{number}"), f"{path}:{number}")


def _named(record: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Return id and text of a record."""
    text = next((record[name] for name in TEXT_FIELDS if isinstance(record.get(name), str)), None)
    if text is None:
        raise InputError(
            f"{where}: no text under any of {', '.join(TEXT_FIELDS)}; it has {', '.join(record) or 'nothing'}. "
            "Correct or remove the line."
        )
    name = next((record[name] for name in QUERY_ID_FIELDS if record.get(name) is not None), "")
    return str(name), text


def _of_row(path: Path, number: int, line: str) -> tuple[str, str]:
    name, tab, text = line.partition("\t")
    if not tab or "\t" in text or not name.strip() or len(name.split()) > 1:
        raise InputError(
            f"{path}:{number}: not an id without spaces, a tab and a text, as in the first line. Correct or remove the line."
        )
    return name, text
