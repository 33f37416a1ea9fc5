"""Detect the format of a corpus file from its first bytes, or refuse the file and suggest `--format`.

A file of a known format must not be read as plain text, because its markup and its column separators would become text
of the blocks. So a file that looks like a table or tagged text is refused if no header describes its columns.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from realmctl.corpus.document import Document, Found
from realmctl.corpus.formats import kilt, passages, records, wikipedia
from realmctl.corpus.formats.records import FieldNames
from realmctl.corpus.settings import CorpusSettings, FormatName
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.rows import header, is_columnar

TABLE_LINES = 5
MS_MARCO_LINE = re.compile(r"\d+\t[^\t]+")


@dataclass(frozen=True)
class Format:
    """A format: its name for messages, and the function that reads a file of it."""

    name: str
    read: Callable[[Path], Iterator[Found]]


FORMATS: dict[FormatName, Format] = {
    "dump": Format("MediaWiki dump", wikipedia.read_dump),
    "wikiextractor": Format("WikiExtractor JSON lines", wikipedia.read_wikiextractor),
    "kilt": Format("KILT knowledge source", kilt.read_kilt),
    "json-lines": Format("JSON lines", records.read_json_lines),
    "squad": Format("SQuAD-layout JSON", passages.read_squad),
    "dpr": Format("DPR passages (TSV)", passages.read_dpr),
    "table": Format("table with named columns", records.read_table),
    "ms-marco": Format("MS MARCO passages (TSV)", passages.read_ms_marco),
    "parquet": Format("Parquet or Arrow", records.read_columnar),
    "doc-text": Format("WikiExtractor <doc> text", wikipedia.read_doc_text),
    "trec": Format("TREC text", passages.read_trec),
    "text": Format("plain text, one document a file", passages.read_plain),
}

WITH_NAMES: dict[FormatName, Callable[[Path, FieldNames], Iterator[Document]]] = {
    "json-lines": records.read_json_lines,
    "table": records.read_table,
    "parquet": records.read_columnar,
}
"""Formats whose fields or columns the user may name."""


def format_of(path: Path, settings: CorpusSettings = CorpusSettings()) -> Format:  # noqa: B008 (frozen)
    """Return the format of a file: the one named, or with "auto" the format detected in its first 64 KiB.

    Raises:
        InputError: the format cannot be read, would be a guess, or has no fields though some are named.
    """
    names = FieldNames.of(settings)
    found = FORMATS[settings.format] if settings.format != "auto" else _detected(path, names)
    if not names.named:
        return found
    read = next((read for each, read in WITH_NAMES.items() if found is FORMATS[each]), None)
    if read is None:
        raise InputError(
            f"{path} is read as {found.name}, whose fields cannot be named. --id-field, --title-field and --text-field are for "
            "JSON lines, CSV, TSV and Parquet. Leave them out, or say what the file is with --format."
        )
    return replace(found, read=lambda file: read(file, names))


def _detected(path: Path, names: FieldNames) -> Format:
    start = streams.head(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    if is_columnar(start):
        return FORMATS["parquet"]
    streams.require_text(path, start)
    if start[:6].lower() == b"<?xml " or start[:10] == b"<mediawiki" or start[:9].upper() == b"<!DOCTYPE":
        return FORMATS["dump"]
    if re.match(rb"<doc\s[^>]*\bid=", start):
        return FORMATS["doc-text"]
    if start[:5] == b"<DOC>":
        return FORMATS["trec"]
    if start[:1] == b"{":
        return FORMATS["json-lines"] if names.named else _json_format(start)
    if start[:1] == b"[":
        raise InputError(
            f"{path} is one JSON array, but a corpus has one JSON object a line. Convert it, for instance "
            f"with jq -c '.[]'."
        )
    return _table_or_text(path, start.decode(errors="replace"), names)


def _json_format(start: bytes) -> Format:
    line = start.partition(b"\n")[0]
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return FORMATS["squad" if b'"data"' in start and b'"paragraphs"' in start else "json-lines"]
    if isinstance(first.get("data"), list):
        return FORMATS["squad"]
    if kilt.is_kilt(first):
        return FORMATS["kilt"]
    return FORMATS["wikiextractor" if {"id", "url", "title", "text"} <= first.keys() else "json-lines"]


def _table_or_text(path: Path, start: str, names: FieldNames) -> Format:
    lines = start.split("\n")[:-1][:TABLE_LINES] or [start]
    if names.named:
        return FORMATS["table"]
    if lines[0].strip().split("\t") == ["id", "text", "title"]:
        return FORMATS["dpr"]
    if records.is_header(header(lines[0])):
        return FORMATS["table"]
    columns = {len(line.split("\t")) for line in lines if line.strip()}
    commas = {_comma_columns(line) for line in lines if line.strip()} if len(lines) > 1 else {1}
    if len(columns) == 1 and columns != {1}:
        what = f"a table of {columns.pop()} columns separated by tabs"
    elif len(commas) == 1 and commas.pop() > 2 and all(" " not in name.strip() for name in lines[0].split(",")):
        what = "a table separated by commas"
    else:
        return FORMATS["text"]
    known = ", ".join(name for name in get_args(FormatName) if name != "auto")
    hint = "ms-marco" if all(MS_MARCO_LINE.fullmatch(line.strip()) for line in lines if line.strip()) else "text"
    raise InputError(
        f"{path} looks like {what}, and no header says which column is the text. Name the column with --text-field if the first "
        f"line is a header. Otherwise add one such as id, title, text, or say what the file is, for instance --format {hint} ({known})."
    )


def _comma_columns(line: str) -> int:
    """Return the number of columns of a line of CSV, and 0 for a line that is none."""
    try:
        return len(next(csv.reader([line]), []))
    except csv.Error:
        return 0
