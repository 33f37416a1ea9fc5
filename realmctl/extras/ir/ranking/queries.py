"""Read queries: the texts to search for, with their ids and without answers.

JSON lines, Parquet and Arrow hold the text under `question`, `query`, `text` or another name of question files (BEIR's queries.jsonl has
`_id` and `text`). TREC's topics have number and title. A table of two columns holds an id and the text (MS MARCO's queries.tsv). A .txt has one query on a line.
Every other file is read as a question set (`questions.parse_questions`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from realmctl.errors import InputError, listed
from realmctl.extras.ir.ranking.beir import queries_file
from realmctl.extras.ir.ranking.qrels import begins_qrels
from realmctl.extras.ir.ranking.topics import is_topics, topics
from realmctl.inputs.rows import Row, columnar, header, is_columnar, json_lines, table, text_rows
from realmctl.inputs.streams import head
from realmctl.questions.questions import ID_FIELDS, QUESTION_FIELDS, Question, identity_of, parse_questions

TEXT_FIELDS = (*QUESTION_FIELDS, "text")
TEXT_COLUMNS = tuple(name.lower() for name in TEXT_FIELDS)
ANSWER_LIST = re.compile(r"\"?\[.*\]\"?")


def read_queries(path: Path) -> Iterator[Question]:
    """Yield the queries of a file, plain or compressed, or of a BEIR folder, in order, as questions without answers.

    A repeated query is left out. Queries without an id in their file are numbered from 1, as questions are.

    Raises:
        InputError: a record is malformed, one id has two different texts, or the file has no queries.
    """
    path = queries_file(path)
    seen: dict[str, int] = {}
    for number, (where, name, text) in enumerate(_records(path), start=1):
        query = Question(name.strip() or str(number), text)
        try:
            f"{query.id}{text}".encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{where}: not text ({error.reason}). Correct or remove it.") from None
        if not text.strip():
            raise InputError(f"{where}: the query {query.id!r} has no text. Correct or remove it.")
        if query.id not in seen:
            seen[query.id] = hash(text)
            yield query
        elif seen[query.id] != hash(text):
            raise InputError(
                f"{where}: an earlier query has the same id {query.id!r} and another text. Give every query an id of its own."
            )
    if not seen:
        raise InputError(f"{path} holds no query. Is this the right file?")


def _records(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (file and place, id or "", text) of each query."""
    if path.is_dir():
        return _questions(path)
    if is_columnar(head(path, 16)):
        return map(_named, columnar(path, (*TEXT_FIELDS, *ID_FIELDS), needed=TEXT_FIELDS))
    start = head(path).decode("utf-8-sig", errors="replace").lstrip()
    if is_topics(start):
        return topics(path)
    first = start.partition("\n")[0].rstrip("\r")
    columns = first.split("\t")
    names = {*header(first)}
    if names & {*TEXT_COLUMNS} and names & {*ID_FIELDS}:
        return map(_named, table(path)[1])
    if begins_qrels(first):
        raise InputError(f"{path} holds relevance judgements (qrels), not queries. Name the file of queries.")
    if _is_record(first):
        return map(_named, json_lines(path))
    if len(columns) == 2 and not first.startswith(("[", "{")) and not ANSWER_LIST.fullmatch(columns[1].strip()):
        return _pairs(path, skip=1 if columns[0].strip().lower() in ID_FIELDS else 0)
    if (
        ".txt" in path.suffixes
        and len(columns) == 1
        and not first.startswith(("[", "{"))
        and not names & {*TEXT_COLUMNS}
    ):
        return ((where, "", line.strip()) for where, line in text_rows(path))
    return _questions(path)


def _questions(path: Path) -> Iterator[tuple[str, str, str]]:
    return ((where, found.id, found.question) for where, found in parse_questions(path)[1])


def _is_record(line: str) -> bool:
    """Return whether a line is one record, and not a whole document such as SQuAD's."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, Mapping) and not any(isinstance(found.get(name), list) for name in ("data", "Data"))


def _named(row: Row) -> tuple[str, str, str]:
    text = next((row.fields[name] for name in TEXT_FIELDS if isinstance(row.fields.get(name), str)), None)
    if text is None:
        raise InputError(
            f"{row.where}: no text under any of {', '.join(TEXT_FIELDS)}; it has {listed(row.fields)}. "
            "Correct or remove the line."
        )
    return row.where, identity_of(row.fields, row.where), text


def _pairs(path: Path, skip: int) -> Iterator[tuple[str, str, str]]:
    for where, line in text_rows(path, skip):
        name, tab, text = line.partition("\t")
        if not tab or "\t" in text or not name.strip() or len(name.split()) > 1:
            raise InputError(
                f"{where}: not an id without spaces, a tab and a text, as in the first line. Correct or remove the line."
            )
        yield where, name, text
