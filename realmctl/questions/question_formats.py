"""Read the published layouts of open-domain questions, with one small reader for each.

JSON lines (NQ-open, DrQA, EfficientQA, FlashRAG, KILT), JSON documents (SQuAD, TriviaQA, the WebQuestions of SEMPRE and
brmson), CSV and TSV with named columns (PopQA) or without (DPR's qas.csv, brmson's CuratedTREC), and Parquet and Arrow files with the same
names of columns, alone or in a dataset folder.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from realmctl.errors import InputError
from realmctl.inputs.dataset_folders import only_split
from realmctl.inputs.delimited import header, table
from realmctl.inputs.rows import is_columnar, rows
from realmctl.inputs.streams import head, lines, require_text, whole_text

QUESTION_FIELDS = ("question", "qText", "utterance", "Question", "query", "input")
ANSWER_FIELDS = ("answer", "answers", "golden_answers")
TABLE_ANSWER_FIELDS = ("possible_answers", *ANSWER_FIELDS)
ID_FIELDS = ("id", "qId", "question_id", "QuestionId", "qid")
COLUMNS = {name.lower(): name for name in (*QUESTION_FIELDS, *ID_FIELDS)}
"""Columns of a table, which are in lower case, by the names of fields."""
MAX_DOCUMENT_BYTES = 2**30

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question as it is in its file. `place` is its line or "record N". `id` may be empty.

    `provenance` are the ids of the pages that tell the answer, where the file names them (KILT).
    """

    place: str
    id: str
    question: str
    answers: list[str]
    is_regex: bool = False
    provenance: tuple[str, ...] = ()


class _Malformed(Exception):
    """An error in one record. The caller adds the file and the line or record."""


def parse_questions(path: Path, answer_field: str | None = None) -> tuple[str, Iterator[ParsedQuestion]]:
    """Return the name of the layout of `path`, detected from its content, and its questions.

    Raises:
        InputError: no layout fits, or a record is malformed.
    """
    if path.is_dir():
        return "a dataset folder", _of_folder(path, answer_field)
    if is_columnar(head(path, 16)):
        return "Parquet or Arrow", _of_columns(path, answer_field)
    require_text(path, start := head(path))
    first, _, more = start.decode("utf-8-sig", errors="replace").lstrip().partition("\n")
    if not first:
        raise InputError(f"{path} is empty, but questions are expected.")
    if first.startswith("[") or (first.startswith("{") and _opens_document(first, bool(more))):
        return _document(path, answer_field)
    if first.startswith("{"):
        return "JSON lines", _each_line(path, lambda line: _from_fields(_parsed(line), answer_field))
    columns = first.count("\t") + 1
    names = header(first)
    if {*names} & {name.lower() for name in QUESTION_FIELDS} and (
        len(names) > 2 or _answer_column(names, answer_field)
    ):
        return "a table with named columns", _named_columns(path, answer_field)
    if columns == 2:
        return "a DPR table of questions and answer lists", _each_line(path, _from_dpr_row)
    if columns >= 4:
        return "a CuratedTREC table of regular expressions", _each_line(path, _from_trec_row)
    raise InputError(
        f"{path}: questions cannot be read from it. It is neither JSON, nor CSV or TSV with columns named question "
        f"and answer, nor a table of two (question, answers) or four (id, kind, question, regex) columns separated by tabs. It begins {first[:60]!r}."
    )


def _of_folder(folder: Path, answer_field: str | None) -> Iterator[ParsedQuestion]:
    for file in only_split(folder):
        yield from _of_columns(file, answer_field)


def _of_columns(path: Path, answer_field: str | None) -> Iterator[ParsedQuestion]:
    answers = (answer_field,) if answer_field else ANSWER_FIELDS
    records = rows(path, (*QUESTION_FIELDS, *answers, *ID_FIELDS, "output", "is_regex"), needed=QUESTION_FIELDS)
    return _each_record(path, records, lambda record: _from_fields(record, answer_field))


def _answer_column(names: list[str], answer_field: str | None) -> str | None:
    """Return the column that holds the answers; None if there is none."""
    wanted = (answer_field.lower(),) if answer_field else TABLE_ANSWER_FIELDS
    return next((name for name in wanted if name in names), None)


def _named_columns(path: Path, answer_field: str | None) -> Iterator[ParsedQuestion]:
    """Yield the questions of CSV or TSV with a header. An answer is a text, or a list as JSON (PopQA) or Python writes it."""
    names, records = table(path)
    field = _answer_column(names, answer_field)
    if field is None:
        raise InputError(
            f"{path}:1: the header names {', '.join(names)}, and none of them holds answers "
            f"({', '.join(TABLE_ANSWER_FIELDS)}). Name the column of answers, or write the questions as JSON lines."
        )
    for number, record in records:
        try:
            known = {COLUMNS.get(name, name): value for name, value in record.items()}
            yield replace(_from_fields({**known, field: _answers_of(record[field])}, field), place=str(number))
        except _Malformed as error:
            raise InputError(f"{path}:{number}: {error} Correct the line or take it out.") from None


def _answers_of(cell: str) -> Any:
    if not cell.lstrip().startswith("["):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return _literal(cell)


def _literal(cell: str) -> Any:
    """Parse a list as Python writes it. It is never evaluated."""
    try:
        return ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise _Malformed(f"{cell[:60]!r} is not a list of answers such as ['one', 'two'].") from None


def _opens_document(first_line: str, more_lines: bool) -> bool:
    """Return whether a file whose first line opens an object is one JSON document rather than JSON lines."""
    has_articles = re.search(r'"[Dd]ata"\s*:\s*\[', first_line[:2000]) is not None
    return has_articles or (more_lines and not first_line.rstrip().endswith("}"))


def _each_line(path: Path, read: Callable[[str], ParsedQuestion]) -> Iterator[ParsedQuestion]:
    for number, line in lines(path):
        if line.strip():
            try:
                yield replace(read(line), place=str(number))
            except _Malformed as error:
                raise InputError(f"{path}:{number}: {error} Correct the line or take it out.") from None


def _document(path: Path, answer_field: str | None) -> tuple[str, Iterator[ParsedQuestion]]:
    try:
        content = json.loads(whole_text(path, MAX_DOCUMENT_BYTES))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}: not valid JSON ({error.msg}). Get the file again, or correct it."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this JSON cannot be read ({error}). Is this the right file?") from None
    if isinstance(content, Mapping) and isinstance(content.get("Data"), list):
        return "TriviaQA", _each_record(path, content["Data"], _from_trivia)
    if isinstance(content, Mapping) and isinstance(content.get("data"), list):
        return "SQuAD", _each_record(path, _squad_questions(path, content["data"]), _from_squad)
    if isinstance(content, list):
        return "a JSON list of questions", _each_record(
            path, content, lambda record: _from_fields(record, answer_field)
        )
    return "JSON lines", _each_record(path, [content], lambda record: _from_fields(record, answer_field))


def _each_record(path: Path, records: Iterable[Any], read: Callable[[Any], ParsedQuestion]) -> Iterator[ParsedQuestion]:
    for number, record in enumerate(records, start=1):
        try:
            yield replace(read(record), place=f"record {number}")
        except _Malformed as error:
            raise InputError(f"{path}:record {number}: {error} Correct the record or take it out.") from None


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Malformed(f"not valid JSON ({error}).") from None


def _from_fields(record: Any, answer_field: str | None) -> ParsedQuestion:
    """Read a record with a question field and an answer field under any of the known names."""
    if not isinstance(record, Mapping):
        raise _Malformed(f"{type(record).__name__}, but an object with a question is expected.")
    question = _first(record, QUESTION_FIELDS)
    if not isinstance(question, str) or not question.strip():
        held = ", ".join(map(str, record)) or "nothing"
        hint = (
            " search reads queries without answers, and eval-em does with their judgements in --qrels."
            if "text" in record
            else ""
        )
        raise _Malformed(f"no text under any of {', '.join(QUESTION_FIELDS)}; it has {held}.{hint}")
    if answer_field is None and isinstance(target := record.get("targetValue"), str):
        answers = [_unescaped(quoted) or plain for quoted, plain in _DESCRIPTION.findall(target)]
    elif answer_field is None and isinstance(outputs := record.get("output"), list):
        return _from_kilt(record, question, outputs)
    else:
        answers = _texts(_first(record, (answer_field,) if answer_field else ANSWER_FIELDS), answer_field)
    given_id = _first(record, ID_FIELDS)
    return ParsedQuestion(
        "", "" if given_id is None else str(given_id), question, answers, record.get("is_regex") is True
    )


def _from_kilt(record: Mapping[str, Any], question: str, outputs: list[Any]) -> ParsedQuestion:
    """Read a KILT record: each output may have an answer and a list of provenance."""
    try:
        answers = [output["answer"] for output in outputs if output.get("answer") is not None]
        pages = [page["wikipedia_id"] for output in outputs for page in output.get("provenance") or ()]
    except (KeyError, TypeError, AttributeError) as error:
        raise _Malformed(f"not a KILT question: {type(error).__name__} {error}.") from None
    provenance = tuple(dict.fromkeys(str(page) for page in pages))
    return ParsedQuestion("", str(record.get("id") or ""), question, _texts(answers), provenance=provenance)


def _from_trivia(record: Any) -> ParsedQuestion:
    """Read a TriviaQA record. Every alias is a right answer."""
    try:
        answer = record["Answer"]
        answers = [answer["Value"], *answer.get("Aliases", ())]
        return ParsedQuestion("", str(record["QuestionId"]), str(record["Question"]), _texts(answers))
    except (KeyError, TypeError, AttributeError) as error:
        raise _Malformed(
            f"not a TriviaQA question: {type(error).__name__} {error} (a test file without answers?)."
        ) from None


def _squad_questions(path: Path, articles: list[Any]) -> Iterator[Any]:
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                yield from paragraph["qas"]
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not laid out as SQuAD is, data > paragraphs > qas ({type(error).__name__} {error})."
        ) from None


def _from_squad(record: Any) -> ParsedQuestion:
    """Read a SQuAD 1.1 or 2.0 record. An impossible question has no answers, even if it lists some."""
    try:
        answers = [] if record.get("is_impossible") else [answer["text"] for answer in record["answers"]]
        return ParsedQuestion("", str(record["id"]), str(record["question"]), _texts(answers))
    except (KeyError, TypeError, AttributeError) as error:
        raise _Malformed(f"not a SQuAD question: {type(error).__name__} {error}.") from None


def _from_dpr_row(line: str) -> ParsedQuestion:
    """Read a question, a tab, and a Python list of strings. The list is parsed as a literal and never evaluated."""
    try:
        row = next(csv.reader([line], delimiter="\t"))
    except csv.Error as error:
        raise _Malformed(f"not a tab-separated row ({error}).") from None
    if len(row) != 2 or not row[0].strip():
        raise _Malformed(f"{len(row)} column(s), but a question and its answer list are expected.")
    return ParsedQuestion("", "", row[0], _texts(_literal(row[1])))


def _from_trec_row(line: str) -> ParsedQuestion:
    """Read id, kind, question and one regular expression, which may contain tabs."""
    row = line.split("\t", maxsplit=3)
    if len(row) != 4 or not row[2].strip():
        raise _Malformed(f"{len(row)} column(s), but id, kind, question and regex are expected.")
    return ParsedQuestion("", row[0].strip(), row[2].strip(), [row[3]], is_regex=True)


def _first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _texts(value: Any, field: str | None = None) -> list[str]:
    """Return a list of strings; a single string becomes a list of one.

    The data sets of Hugging Face keep an object under `answers` (SQuAD: text) or `answer` (TriviaQA: value, aliases).
    """
    if isinstance(value, Mapping):
        value = value["text"] if "text" in value else [value.get("value"), *(value.get("aliases") or ())]
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        where = f"under {field}" if field else f"as answers ({', '.join(ANSWER_FIELDS)})"
        held = "nothing" if value is None else repr(value)[:60]
        raise _Malformed(f"{held} {where}, but text or a list of texts is expected.")
    return texts


def _unescaped(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted)
