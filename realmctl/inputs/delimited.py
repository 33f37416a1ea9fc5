"""Rows of CSV and TSV files. In CSV a field may hold line breaks between double quotes (RFC 4180). In TSV a record is a line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from realmctl.errors import InputError
from realmctl.inputs import streams


def header(line: str) -> list[str]:
    """Return the names of the columns in a header line, in lower case without quotes."""
    names = line.strip().split("\t" if "\t" in line else ",")
    return [unquoted(name.strip()).lower() for name in names]


def unquoted(value: str) -> str:
    return value[1:-1].replace('""', '"') if len(value) > 1 and value[0] == value[-1] == '"' else value


def delimited_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of each row that is not blank, the header included.

    Fields are separated by tabs if the first line holds a tab, otherwise by commas. Raises InputError naming file and
    line for a row that is no CSV.
    """
    if b"\t" in streams.head(path).partition(b"\n")[0]:
        for number, line in streams.lines(path):
            if line.strip():
                yield number, [unquoted(field) for field in line.split("\t")]
        return
    reader = csv.reader((line + "\n" for _, line in streams.lines(path)), strict=True)
    while (row := _next_row(path, reader)) is not None:
        if row:
            yield reader.line_num, row


def table(path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the names of the columns in lower case, and an iterator over (line number, {column: field}).

    The iterator raises InputError naming file and line for a row with another number of columns.
    """
    rows = delimited_rows(path)
    _, first = next(rows, (1, []))
    columns = [name.strip().lower() for name in first]
    return columns, _records(path, columns, rows)


def _records(
    path: Path, columns: list[str], rows: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, dict[str, str]]]:
    for number, row in rows:
        if len(row) != len(columns):
            raise InputError(
                f"{path}:{number}: {len(row)} columns, but the header names {len(columns)}. Correct or remove the line."
            )
        yield number, dict(zip(columns, row, strict=True))


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
