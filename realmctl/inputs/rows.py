"""Rows of files: JSON lines, JSON lists, CSV and TSV, Parquet and Arrow.

In CSV, whose columns are separated by commas, semicolons or bars, a field may hold line breaks between double quotes (RFC 4180). In
TSV a row is a line. Another process reads Parquet and
Arrow (`reader_process`).
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeGuard

from realmctl.errors import InputError, listed, require_package
from realmctl.inputs import streams
from realmctl.inputs.reader_process import FAILED

PARQUET, ARROW_FILE, ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
"""First bytes: Parquet, Arrow's IPC file, and Arrow's IPC stream, which `save_to_disk` of datasets writes."""
MAX_RECORD_CHARS = 16 * 2**20
GAP = re.compile(r"[\s,]*")
DELIMITERS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
"""What separates the columns of tables that are detected, and how messages call it."""
SEPARATOR = re.compile(r'"?sep=([^\s"])"?[ \t]*\r?\n', re.IGNORECASE)
QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Row(NamedTuple):
    """A row of a file: its file and place there, for messages, its line or its number from 1, and its values by field."""

    where: str
    number: int
    fields: Mapping[str, Any]


def first_of(fields: Mapping[str, object], names: Iterable[str]) -> Any:
    """Return the value under the first of these names that has one, or else an empty one, or None."""
    given = [fields[name] for name in names if fields.get(name) is not None]
    return next((value for value in given if value not in ("", [], {})), given[0] if given else None)


def text_rows(path: Path, skip: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (file and line, text) of each line that is not blank, without the first `skip` lines."""
    return ((f"{path}:{number}", line) for number, line in streams.lines(path) if number > skip and line.strip())


class WrittenFloat(float):
    """A number with a fraction or an exponent, which as text is what the file has: `2.50` and not 2.5, `1.10` and not 1.1."""

    def __new__(cls, written: str) -> Self:
        made = super().__new__(cls, written)
        made.written = written
        return made

    written: str

    def __repr__(self) -> str:
        return self.written


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value of JSON is a number: not true or false, which Python counts as whole numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _missing(_: str) -> None:
    """NaN, Infinity and -Infinity, which JSON has not and pandas writes for a missing value: null."""


def parse_json(text: str | bytes, *, pairs: bool = False) -> Any:
    """Parse JSON whose numbers keep their text: an answer or an id is a text. NaN and Infinity are null. Raises what `json.loads` raises.

    pairs: Return an object as the list of its pairs, so that no name that stands twice is lost.
    """
    hook = list if pairs else None
    return json.loads(text, parse_float=WrittenFloat, parse_constant=_missing, object_pairs_hook=hook)


def json_value(line: str, where: str) -> Any:
    """Return the value of a line. Raises InputError naming `where` if it is not JSON."""
    try:
        return parse_json(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({error}). Correct or remove the line.") from None


def json_lines(path: Path) -> Iterator[Row]:
    """Yield the objects of JSON lines. Raises InputError naming file and line for a line that is no object."""
    for number, line in streams.lines(path):
        if line.strip():
            where = f"{path}:{number}"
            yield _object(where, number, json_value(line, where))


def json_list(path: Path) -> Iterator[Row]:
    """Yield the objects of a file that holds a JSON list. Only a few of them are in memory.

    Raises InputError for a damaged list, an item of more than 16 MiB, or one that is no object.
    """
    for number, item in enumerate(_items(path), start=1):
        yield _object(f"{path}, record {number}", number, item)


def _object(where: str, number: int, value: object) -> Row:
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON {type(value).__name__}, but an object is expected. Correct or remove it.")
    return Row(where, number, value)


def _items(path: Path) -> Iterator[Any]:
    parse, text, least, opened = (
        json.JSONDecoder(parse_float=WrittenFloat, parse_constant=_missing).raw_decode,
        "",
        0,
        False,
    )
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


def delimiter_of(line: str) -> str:
    """Return what separates the columns of a header: tab, comma, semicolon or bar, that which makes the most of them."""
    return max(DELIMITERS, key=lambda each: len(_cells(line, each)))


def first_row(start: str) -> tuple[str, str]:
    """Return the first row of a table that begins so, and the delimiter that Excel's line `sep=;` before it names, or an empty text."""
    said = SEPARATOR.match(start)
    return start[said.end() if said else 0 :].partition("\n")[0], said[1] if said else ""


def header(line: str, delimiter: str = "") -> list[str]:
    """Return the names of the columns in a header line, in lower case without quotes."""
    return [name.strip().lower() for name in _cells(line.strip(), delimiter or delimiter_of(line))]


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def unquoted(value: str) -> str:
    """Return a field of TSV without the double quotes around it. They are text where a quote between them is not doubled."""
    return value[1:-1].replace('""', '"') if QUOTED.fullmatch(value) else value


def table(path: Path, delimiter: str = "") -> tuple[list[str], Iterator[Row]]:
    """Return the names of the columns of CSV or TSV in lower case, and an iterator over the rows.

    Without a delimiter, that of the header is taken.

    The iterator raises InputError naming file and line for a row that is no CSV, or has another number of columns.
    """
    first_line, said = first_row(streams.head(path).decode("utf-8-sig", errors="replace"))
    rows = _delimited(path, delimiter or said or delimiter_of(first_line))
    _, first = next(rows, (1, []))
    if said:  # the line that says it, of one or two cells
        _, first = next(rows, (2, []))
    columns = [name.strip().lower() for name in first]
    return columns, _named(path, columns, rows)


def _named(path: Path, columns: list[str], rows: Iterator[tuple[int, list[str]]]) -> Iterator[Row]:
    for number, row in rows:
        if len(row) != len(columns):
            raise InputError(
                f"{path}:{number}: {len(row)} columns, but the header names {len(columns)}. Correct or remove the line."
            )
        yield Row(f"{path}:{number}", number, dict(zip(columns, row, strict=True)))


def _delimited(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) of each row."""
    if delimiter == "\t":
        for number, line in streams.lines(path):
            if line.strip():
                yield number, [unquoted(field) for field in line.split("\t")]
        return
    reader = csv.reader((line + "\n" for _, line in streams.lines(path)), delimiter=delimiter, strict=True)
    while (row := _next_row(path, reader)) is not None:
        if row:
            yield reader.line_num, row


def _next_row(path: Path, reader: Any) -> list[str] | None:
    """Return the next row, or None at the end. The limit on fields is one for the whole process, so it is restored."""
    limit = csv.field_size_limit(streams.MAX_LINE_BYTES)
    try:
        return next(reader, None)
    except csv.Error as error:
        raise InputError(
            f"{path}:{reader.line_num}: not a row of CSV ({error}). Correct the quotes of the line."
        ) from None
    finally:
        csv.field_size_limit(limit)


def is_columnar(start: bytes) -> bool:
    """Return whether a file with these first bytes is a Parquet or an Arrow file."""
    return start.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


def columnar(
    path: Path, names: Sequence[str], needed: Sequence[str], advice: str = "Rename a column."
) -> Iterator[Row]:
    """Yield the rows of a Parquet or Arrow file, with the columns that are in `names`.

    Args:
        path: the file. It is read a few rows at a time.
        names: columns to read, where the file has them. One in lower case stands for its name in any case.
        needed: columns of which the file must have at least one.
        advice: what to do about a file without any of them.

    Raises:
        InputError: the file is damaged, holds too much in one row, or has none of the needed columns.
        ResourceError: pyarrow is not installed.
    """
    require_package("pyarrow", "parquet", f"{path} is a Parquet or Arrow file, and reading it")
    command = [sys.executable, "-P", "-m", "realmctl.inputs.reader_process", str(path.resolve()), *names]
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        try:
            columns = json.loads(child.stdout.readline() or "null")
            if columns is not None and not {*columns, *map(str.lower, columns)} & {*needed}:
                raise InputError(
                    f"{path} has the columns {listed(columns)}. It needs one named {' or '.join(needed)}. {advice}"
                )
            for number, line in enumerate(child.stdout, start=1):
                yield Row(f"{path}, row {number}", number, json.loads(line, parse_constant=_missing))
        except BaseException:
            child.kill()
            raise
        reason = child.stderr.read().decode(errors="replace").strip()
        if code := child.wait():
            why = reason if code == FAILED else f"reading it ended with code {code}: {reason[-200:] or 'no message'}"
            raise InputError(f"{path} cannot be read: {why}. Get or write the file again.")
