"""Corpora as tables: CSV and TSV with a header that names the columns, Parquet and Arrow, and MS MARCO's collection.tsv.

The names of the columns are those of JSON lines (`formats.IDS`, `TITLES`, `TEXTS`). In CSV a field may hold line
breaks between double quotes (RFC 4180). In TSV a record is a line. MS MARCO's collection (microsoft.github.io/msmarco)
has no header: each line is a passage id, a tab and the passage.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from realmctl.errors import InputError
from realmctl.text import streams
from realmctl.text.columnar.rows import rows
from realmctl.text.corpus.formats import IDS, TEXTS, TITLES, PageCounts, RawDocument, from_record, kept, unquoted


def header(line: str) -> list[str]:
    """Return the names of the columns in a header line, in lower case without quotes."""
    names = line.strip().split("\t" if "\t" in line else ",")
    return [unquoted(name.strip()).lower() for name in names]


def is_header(names: list[str]) -> bool:
    """Return whether the columns name a text and also an id or a title."""
    return bool({*names} & {*TEXTS}) and bool({*names} & {*IDS, *TITLES}) and len(set(names)) == len(names)


def read_table(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the documents of a CSV or TSV file with named columns. Raises InputError naming file and line."""
    rows = _rows(path)
    _, first = next(rows, (1, []))
    names = [name.strip().lower() for name in first]
    if not is_header(names):
        raise InputError(
            f"{path}:1: the header names {', '.join(names) or 'nothing'}. A table needs a column for the text "
            f"({', '.join(TEXTS)}) and one for the id or the title ({', '.join((*IDS, *TITLES))})."
        )
    for number, row in rows:
        where = f"{path}:{number}"
        if len(row) != len(names):
            raise InputError(
                f"{where}: {len(row)} columns, but the header names {len(names)}. Correct or remove the line."
            )
        record = dict(zip(names, row, strict=True))
        yield from kept(from_record(record, f"{path.name.partition('.')[0]}-{number}", where), counts, keep_lists)


def read_columnar(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the documents of a Parquet or Arrow file. Raises InputError naming file and row."""
    for number, record in enumerate(rows(path, (*IDS, *TITLES, *TEXTS), needed=TEXTS), start=1):
        where = f"{path}, row {number}"
        yield from kept(from_record(record, f"{path.name.partition('.')[0]}-{number}", where), counts, keep_lists)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of each row that is not blank."""
    if b"\t" in streams.head(path).partition(b"\n")[0]:
        for number, line in streams.lines(path):
            if line.strip():
                yield number, [unquoted(field) for field in line.split("\t")]
        return
    reader = csv.reader((line + "\n" for _, line in streams.lines(path)), strict=True)
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


def read_ms_marco(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the passages of MS MARCO's collection.tsv; they have no titles."""
    for number, line in streams.lines(path):
        if not line.strip():
            continue
        identity, tab, text = line.partition("\t")
        if not tab or "\t" in text:
            raise InputError(
                f"{path}:{number}: {line.count(chr(9)) + 1} columns, but MS MARCO's collection has an id and a "
                f"passage. Correct or remove the line."
            )
        yield from kept(RawDocument(identity.strip(), "", text, f"{path}:{number}"), counts, keep_lists)
