"""Questions with their answers, and the published layouts in which they are read.

JSON lines (NQ-open, DrQA, EfficientQA, FlashRAG, KILT), JSON documents (SQuAD, TriviaQA, AmbigQA, the WebQuestions of SEMPRE and
brmson), CSV and TSV with named columns (PopQA) or without (DPR's qas.csv, brmson's CuratedTREC), and Parquet and Arrow files with the same
names of columns, alone or in a dataset folder. The layout is detected from the content, not from the name.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from realmctl.errors import InputError, listed
from realmctl.inputs.dataset_folders import only_split
from realmctl.inputs.rows import (
    Row,
    columnar,
    first_of,
    header,
    is_columnar,
    is_number,
    json_lines,
    json_list,
    parse_json,
    table,
    text_rows,
)
from realmctl.inputs.streams import head, require_text, whole_text
from realmctl.log import say, warn
from realmctl.questions.regexes import is_usable, looks_like_regex

QUESTION_FIELDS = ("question", "qText", "utterance", "Question", "query", "input")
ANSWER_FIELDS = ("possible_answers", "answer", "answers", "golden_answers")
ANNOTATIONS = "annotations"
WRITTEN_LIST = re.compile(r"""\s*\[\s*(?:(["']).*\1)?\s*\]\s*""", re.DOTALL)
"""A list of texts that is written as a text (PopQA)."""
ID_FIELDS = ("id", "_id", "qid", "query_id", "query-id", "question_id", "questionid", "example_id")
"""Names of the field or column of an id, in any case: of questions, queries and judged queries alike."""
COLUMNS = {name.lower(): name for name in QUESTION_FIELDS}
"""Columns of a table, which are in lower case, by the names of fields."""
LANGUAGE = "en"
MAX_DOCUMENT_BYTES = 2**30
MAX_SUSPECT_SHARE = 0.05

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its right answers. With `is_regex` the answers are regular expressions.

    `provenance` are the ids of the documents that tell the answer, where the file names them.
    """

    id: str
    question: str
    answers: tuple[str, ...] = ()
    is_regex: bool = False
    provenance: tuple[str, ...] = ()


Placed = tuple[str, Question]
"""A question as it is in its file, after its file and place there. Its id may be empty."""


def read_questions(path: Path, *, is_regex: bool | None = None, answer_field: str | None = None) -> list[Question]:
    """Return the questions of a file in its order, without questions that repeat an id, and questions without answers.

    Questions without an id are numbered from 1, so those with one text all count, as in DPR's evaluation. The file may be
    compressed. The number of dropped questions goes to stderr.

    Args:
        path: the file.
        is_regex: whether answers are regular expressions. None follows the format.
        answer_field: name of the field or column of answers, for instance for EfficientQA.

    Raises:
        InputError: a record is malformed, one id has two different questions, the file has no questions, or answers
            look like regular expressions and neither `is_regex` nor the format declares them (DrQA's CuratedTREC).
    """
    name, found = parse_questions(path, answer_field)
    dropped: Counter[str] = Counter()
    questions = list(_checked(found, is_regex, dropped).values())
    if not questions:
        why = ", ".join(f"{count} {reason}" for reason, count in dropped.items()) or "it holds no record"
        raise InputError(
            f"{path}: no question has answers ({why}; read as {name}). "
            "Is this the right file, and the right field of answers?"
        )
    if is_regex is None:
        require_declared_patterns(path, questions)
    say(f"{path}: {len(questions)} questions, read as {name}")
    patterns = [answer for question in questions if question.is_regex for answer in question.answers]
    if invalid := [pattern for pattern in patterns if not is_usable(pattern)]:
        warn(
            f"{path}: {len(invalid)} of {len(patterns)} answers are no regular expressions that can be searched for, such as "
            f"{invalid[0][:60]!r}. Nothing matches them. Correct them, or say --no-regex-answers if they are texts."
        )
    for reason, count in dropped.items():
        warn(f"{path}: {count} questions dropped: {reason}")
    return questions


def require_declared_patterns(path: Path, questions: Sequence[Question]) -> None:
    """Raise InputError if many answers look like regular expressions and the format does not say that they are."""
    suspects = [
        question for question in questions if not question.is_regex and any(map(looks_like_regex, question.answers))
    ]
    if len(suspects) > MAX_SUSPECT_SHARE * len(questions):
        raise InputError(
            f"{path}: the answers of {len(suspects)} of {len(questions)} questions look like regular expressions, such "
            f"as {suspects[0].answers[0][:60]!r}, and the file does not say whether they are. Say --regex-answers or "
            "--no-regex-answers."
        )


def _checked(found: Iterable[Placed], is_regex: bool | None, dropped: Counter[str]) -> dict[str, Question]:
    questions: dict[str, Question] = {}
    for number, (where, question) in enumerate(found, start=1):
        answers = tuple(dict.fromkeys(answer for answer in question.answers if answer.strip()))
        if not answers:
            dropped["without an answer"] += 1
            continue
        try:
            "".join((question.id, question.question, *answers)).encode()
        except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON allows and UTF-8 does not
            raise InputError(f"{where}: not text ({error.reason}). Correct or remove it.") from None
        question = replace(
            question,
            id=question.id or str(number),
            answers=answers,
            is_regex=question.is_regex if is_regex is None else is_regex,
        )
        if questions.setdefault(question.id, question) is question:
            continue
        if questions[question.id] != question:
            raise InputError(
                f"{where}: an earlier question has the same id {question.id!r}. "
                "Give every question an id of its own, or none at all."
            )
        dropped["repeated"] += 1
    return questions


def parse_questions(path: Path, answer_field: str | None = None) -> tuple[str, Iterator[Placed]]:
    """Return the name of the layout of `path`, detected from its content, and its questions as they are in it.

    Raises:
        InputError: no layout fits, or a record is malformed.
    """

    def named(rows: Iterable[Row]) -> Iterator[Placed]:
        return ((row.where, _question(row, answer_field)) for row in rows)

    if path.is_dir():
        return "a dataset folder", named(row for file in only_split(path) for row in _columnar(file, answer_field))
    if is_columnar(head(path, 16)):
        return "Parquet or Arrow", named(_columnar(path, answer_field))
    require_text(path, start := head(path))
    first, _, more = start.decode("utf-8-sig", errors="replace").lstrip().partition("\n")
    if not first:
        raise InputError(f"{path} is empty, but questions are expected.")
    if first.startswith("["):
        return "a JSON list of questions", named(json_list(path))
    if first.startswith("{"):
        has_articles = re.search(r'"[Dd]ata"\s*:\s*\[', first[:2000]) is not None
        if has_articles or (more and not first.rstrip().endswith("}")):
            return _document(path, answer_field)
        return "JSON lines", named(json_lines(path))
    columns = first.count("\t") + 1
    names = header(first)
    if {*names} & {name.lower() for name in QUESTION_FIELDS} and (
        len(names) > 2 or _answer_column(names, answer_field)
    ):
        return "a table with named columns", _named_columns(path, answer_field)
    if columns == 2:
        return "a DPR table of questions and answer lists", _each(text_rows(path), _from_dpr_row)
    if columns >= 4:
        return "a CuratedTREC table of regular expressions", _each(text_rows(path), _from_trec_row)
    raise InputError(
        f"{path}: questions cannot be read from it. It is neither JSON, nor CSV or TSV with columns named question "
        f"and answer, nor a table of two (question, answers) or four (id, kind, question, regex) columns separated by tabs. It begins {first[:60]!r}."
    )


def _malformed(where: str, why: str) -> InputError:
    return InputError(f"{where}: {why} Correct it or take it out.")


def _columnar(path: Path, answer_field: str | None) -> Iterator[Row]:
    answers = (answer_field,) if answer_field else ANSWER_FIELDS
    return columnar(
        path, (*QUESTION_FIELDS, *answers, *ID_FIELDS, "output", ANNOTATIONS, "is_regex"), needed=QUESTION_FIELDS
    )


def _answer_column(names: list[str], answer_field: str | None) -> str | None:
    """Return the column that holds the answers; None if there is none."""
    wanted = (answer_field.lower(),) if answer_field else ANSWER_FIELDS
    return next((name for name in wanted if name in names), None)


def _named_columns(path: Path, answer_field: str | None) -> Iterator[Placed]:
    """Yield the questions of CSV or TSV with a header. An answer is a text, or a list as JSON (PopQA) or Python writes it."""
    names, rows = table(path)
    field = _answer_column(names, answer_field)
    if field is None:
        raise InputError(
            f"{path}:1: the header names {listed(names)}, and none of them holds answers "
            f"({', '.join(ANSWER_FIELDS)}). Name the column of answers, or write the questions as JSON lines."
        )
    for row in rows:
        known = {COLUMNS.get(name, name): value for name, value in row.fields.items()}
        if (cell := row.fields[field]).lstrip().startswith("["):
            known[field] = _written_list(cell, row.where)
        yield row.where, _question(row._replace(fields=known), field)


def _written_list(text: str, where: str) -> Any:
    """Parse a list as JSON or Python writes it."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return _literal(text, where)


def _literal(cell: str, where: str) -> Any:
    """Parse a list as Python writes it. It is never evaluated."""
    try:
        return ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise _malformed(where, f"{cell[:60]!r} is not a list of answers such as ['one', 'two'].") from None


def _document(path: Path, answer_field: str | None) -> tuple[str, Iterator[Placed]]:
    """Read one JSON object: TriviaQA, SQuAD, or a single question."""
    try:
        content = parse_json(whole_text(path, MAX_DOCUMENT_BYTES))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}: not valid JSON ({error.msg}). Get the file again, or correct it."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this JSON cannot be read ({error}). Is this the right file?") from None
    if isinstance(content.get("Data"), list):
        return "TriviaQA", _each(_numbered(path, content["Data"]), _from_trivia)
    if isinstance(content.get("data"), list):
        return "SQuAD", _each(_numbered(path, _squad_records(path, content["data"])), _from_squad)
    row = Row(f"{path}, record 1", 1, content)
    return "JSON lines", iter([(row.where, _question(row, answer_field))])


def _numbered(path: Path, records: Iterable[object]) -> Iterator[tuple[str, Any]]:
    return ((f"{path}, record {number}", record) for number, record in enumerate(records, start=1))


def _each(found: Iterable[tuple[str, Any]], read: Callable[[Any, str], Question]) -> Iterator[Placed]:
    return ((where, read(record, where)) for where, record in found)


def _question(row: Row, answer_field: str | None) -> Question:
    """Read a row with a question field and an answer field under any of the known names."""
    fields, where = row.fields, row.where
    question = first_of(fields, QUESTION_FIELDS)
    if not isinstance(question, str) or not question.strip():
        hint = (
            " search reads queries without answers, and eval-em does with their judgements in --qrels."
            if "text" in fields
            else ""
        )
        held = ", ".join(fields) or "nothing"
        raise _malformed(where, f"no text under any of {', '.join(QUESTION_FIELDS)}; it has {held}.{hint}")
    provenance: tuple[str, ...] = ()
    if answer_field is None and isinstance(target := fields.get("targetValue"), str):
        answers = tuple(re.sub(r"\\(.)", r"\1", quoted) or plain for quoted, plain in _DESCRIPTION.findall(target))
    elif answer_field is None and isinstance(outputs := fields.get("output"), list):
        answers, provenance = _from_kilt(outputs, where)
    elif answer_field is None and first_of(fields, ANSWER_FIELDS) is None and fields.get(ANNOTATIONS) is not None:
        answers = answer_texts(list(_annotated(fields[ANNOTATIONS])), where, ANNOTATIONS)
    else:
        given = first_of(fields, (answer_field,) if answer_field else ANSWER_FIELDS)
        if isinstance(given, str) and WRITTEN_LIST.fullmatch(given):
            given = _written_list(given, where)
        answers = answer_texts(given, where, answer_field)
    return Question(identity_of(fields, where), question, answers, fields.get("is_regex") is True, provenance)


def identity_of(fields: Mapping[str, object], where: str) -> str:
    """Return the id of a question or a query; empty if it has none. Raises InputError if it is neither a text nor a number."""
    identity = first_of({name.lower(): value for name, value in fields.items()}, ID_FIELDS)
    if isinstance(identity, bool | list | dict):
        raise _malformed(where, f"its id is {str(identity)[:60]!r}, and a text or a number is expected.")
    return "" if identity is None else str(identity).strip()


def _from_kilt(outputs: list[Any], where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return answers and pages of a KILT record: each output may have an answer and a list of provenance."""
    try:
        answers = [output["answer"] for output in outputs if output.get("answer") is not None]
        pages = [page["wikipedia_id"] for output in outputs for page in output.get("provenance") or ()]
    except (KeyError, TypeError, AttributeError) as error:
        raise _malformed(where, f"not a KILT question: {type(error).__name__} {error}.") from None
    return answer_texts(answers, where), tuple(dict.fromkeys(map(str, pages)))


def _annotated(annotations: Any) -> Iterator[Any]:
    """Yield the answers of AmbigQA's annotations: those to the question, and those to each of its readings (`qaPairs`).

    A list of objects is an object of lists in the files of the hub.
    """
    for each in annotations if isinstance(annotations, list) else [annotations]:
        if isinstance(each, Mapping):
            yield from _answer_texts(each.get("answer") or [])
            yield from _annotated(each.get("qaPairs") or [])


def _from_trivia(record: Any, where: str) -> Question:
    """Read a TriviaQA record. Every alias is a right answer."""
    try:
        answer = record["Answer"]
        answers = [answer["Value"], *answer.get("Aliases", ())]
        return Question(str(record["QuestionId"]), str(record["Question"]), answer_texts(answers, where))
    except (KeyError, TypeError, AttributeError) as error:
        why = f"not a TriviaQA question: {type(error).__name__} {error} (a test file without answers?)."
        raise _malformed(where, why) from None


def _squad_records(path: Path, articles: list[Any]) -> Iterator[Any]:
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                yield from paragraph["qas"]
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not laid out as SQuAD is, data > paragraphs > qas ({type(error).__name__} {error})."
        ) from None


def _from_squad(record: Any, where: str) -> Question:
    """Read a SQuAD 1.1 or 2.0 record. An impossible question has no answers, even if it lists some."""
    try:
        answers = [] if record.get("is_impossible") else [answer["text"] for answer in record["answers"]]
        return Question(str(record["id"]), str(record["question"]), answer_texts(answers, where))
    except (KeyError, TypeError, AttributeError) as error:
        raise _malformed(where, f"not a SQuAD question: {type(error).__name__} {error}.") from None


def _from_dpr_row(line: str, where: str) -> Question:
    """Read a question, a tab, and a Python list of strings."""
    try:
        row = next(csv.reader([line], delimiter="\t"))
    except csv.Error as error:
        raise _malformed(where, f"not a tab-separated row ({error}).") from None
    if len(row) != 2 or not row[0].strip():
        raise _malformed(where, f"{len(row)} column(s), but a question and its answer list are expected.")
    return Question("", row[0], answer_texts(_literal(row[1], where), where))


def _from_trec_row(line: str, where: str) -> Question:
    """Read id, kind, question and one regular expression, which may contain tabs."""
    row = line.split("\t", maxsplit=3)
    if len(row) != 4 or not row[2].strip():
        raise _malformed(where, f"{len(row)} column(s), but id, kind, question and regex are expected.")
    return Question(row[0].strip(), row[2].strip(), (row[3],), is_regex=True)


def answer_texts(value: object, where: str, field: str | None = None) -> tuple[str, ...]:
    """Return texts; a single text becomes a tuple of one, and a number the text that it is written as.

    An answer may be an object: `text` (SQuAD), `value` (TriviaQA), and `aliases` beside either. MKQA keeps lists of them by
    language, and its questions are English.
    """
    if isinstance(value, Mapping) and not {"text", "value"} & {*value}:
        if LANGUAGE not in value:
            held = ", ".join(value) or "nothing"
            raise _malformed(
                where, f"an object of {held} as answers, and neither text, value nor the language {LANGUAGE} is in it."
            )
        value = value[LANGUAGE]
    texts = list(_answer_texts(value))
    if value is None or not all(isinstance(text, str) for text in texts):
        under = f"under {field}" if field else f"as answers ({', '.join(ANSWER_FIELDS)})"
        held = "nothing" if value is None else repr(value)[:60]
        raise _malformed(where, f"{held} {under}, but text or a list of texts is expected.")
    return tuple(texts)


def _answer_texts(value: object) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _answer_texts(each)
    elif isinstance(value, Mapping):
        main = value.get("text", value.get("value"))
        yield from () if main is None else _answer_texts(main)
        yield from _answer_texts(value.get("aliases") or [])
    else:
        yield str(value) if is_number(value) else value
