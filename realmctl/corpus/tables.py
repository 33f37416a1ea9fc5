"""Corpora as tables: CSV and TSV with a header that names the columns, Parquet and Arrow, and MS MARCO's collection.tsv.

The names of the columns are those of JSON lines (`formats.IDS`, `TITLES`, `TEXTS`). MS MARCO's collection (microsoft.github.io/msmarco)
has no header: each line is a passage id, a tab and the passage.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from realmctl.corpus.formats import (
    IDS,
    KNOWN_NAMES,
    TEXTS,
    TITLES,
    FieldNames,
    PageCounts,
    RawDocument,
    from_record,
    kept,
)
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.delimited import table
from realmctl.inputs.rows import rows


def is_header(columns: list[str], names: FieldNames = KNOWN_NAMES) -> bool:
    """Return whether the columns hold a text and, unless the user named the column of the text, an id or a title."""
    columns_of_a_document = {*columns} & {*names.texts} and (names.text or {*columns} & {*names.ids, *names.titles})
    return bool(columns_of_a_document) and len(set(columns)) == len(columns)


def read_table(
    path: Path, counts: PageCounts, keep_lists: bool, names: FieldNames = KNOWN_NAMES
) -> Iterator[RawDocument]:
    """Yield the documents of a CSV or TSV file with named columns. Raises InputError naming file and line."""
    columns, records = table(path)
    names = names.lower()
    names.require_in(columns, f"{path}:1")
    if not is_header(columns, names):
        raise InputError(
            f"{path}:1: the header names {', '.join(columns) or 'nothing'}. A table needs a column for the text "
            f"({', '.join(TEXTS)}) and one for the id or the title ({', '.join((*IDS, *TITLES))}). If they have other names, say "
            "--text-field, --title-field and --id-field."
        )
    for number, record in records:
        where, substitute = f"{path}:{number}", f"{path.name.partition('.')[0]}-{number}"
        yield from kept(from_record(record, substitute, where, names), counts, keep_lists)


def read_columnar(
    path: Path, counts: PageCounts, keep_lists: bool, names: FieldNames = KNOWN_NAMES
) -> Iterator[RawDocument]:
    """Yield the documents of a Parquet or Arrow file. Raises InputError naming file and row."""
    columns = (*names.ids, *names.titles, *names.texts)
    read = rows(path, columns, needed=names.texts, advice="Name the column of the text with --text-field.")
    for number, record in enumerate(read, start=1):
        where, substitute = f"{path}, row {number}", f"{path.name.partition('.')[0]}-{number}"
        names.require_in(record, where)
        yield from kept(from_record(record, substitute, where, names), counts, keep_lists)


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
