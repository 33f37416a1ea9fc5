"""Detect the format of a corpus file from its first bytes, or refuse the file and suggest `--format`.

A file of a known format must not be read as plain text, because its markup and its column separators would become text
of the blocks. So a file that looks like a table or tagged text, or whose name ends like that of one, is refused if nothing tells
how to read it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.formats import passages, records, wikipedia
from realmctl.corpus.formats.format import HEAD_BYTES, Format
from realmctl.corpus.formats.records import FieldNames
from realmctl.corpus.settings import FORMAT_NAMES
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.rows import DELIMITERS, delimiter_of, first_row, header, is_columnar
from realmctl.registry import offered

FIRST_OBJECT_BYTES = 2**24
"""What is read of a file whose first JSON object is longer than `HEAD_BYTES`: its fields say what the file is."""
ALL_FORMATS = "`realmctl chunk --help` lists all"
TABLE_ROWS = 50
ENDINGS_OF_DATA = frozenset(
    {".csv", ".tsv", ".tab", ".psv", ".json", ".jsonl", ".ndjson", ".xml", ".parquet", ".arrow"}
)
"""Endings of names that no plain text has."""
MS_MARCO_LINE = re.compile(r"\d+\t[^\t]+")
MULTISTREAM_LINE = re.compile(r"\d{3,}:\d+:\S.*")  # a place in a file, a page and its title; "12:00:01" is a time
ROOT = re.compile(
    rb"(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE\b[^<>\[]*(?:\[.*?\]\s*)?>|\s)*<([A-Za-z][\w:.-]*)(?=[\s/>])", re.I | re.S
)


FORMATS: dict[str, Format] = {
    "dump": Format("MediaWiki dump", wikipedia.read_dump),
    "wikiextractor": Format("WikiExtractor JSON lines", wikipedia.read_wikiextractor),
    "json-lines": Format("JSON lines", records.read_json_lines, has_fields=True),
    "squad": Format("SQuAD-layout JSON", passages.read_squad),
    "dpr": Format("DPR passages (TSV)", passages.read_dpr),
    "table": Format("table with named columns", records.read_table, has_fields=True),
    "ms-marco": Format("MS MARCO passages (TSV)", passages.read_ms_marco),
    "parquet": Format("Parquet or Arrow", records.read_columnar, has_fields=True),
    "doc-text": Format("WikiExtractor <doc> text", wikipedia.read_doc_text),
    "trec": Format("TREC text", passages.read_trec),
    "text": Format("plain text, one document a file", passages.read_plain, is_one=True),
}


def format_of(file: CorpusFile) -> Format:
    """Return the format of a file: the one named, or with "auto" the format detected in its first 64 KiB.

    Raises:
        InputError: the format cannot be read, would be a guess, or has no fields though some are named.
        ResourceError: the package that offers the format cannot be imported, or offers something else.
    """
    settings = file.settings
    with file.left_out_by_option():
        found = _detected(file) if settings.format == "auto" else FORMAT_NAMES.instance(settings.format, Format)
    if FieldNames.of(settings).named and not found.has_fields:
        raise InputError(
            f"{file.path} is read as {found.name}, whose fields cannot be named. --id-field, --title-field and --text-field are for "
            "JSON lines, CSV, TSV and Parquet. Leave them out, or say what the file is with --format."
        )
    return found


def _detected(file: CorpusFile) -> Format:
    start, named = (
        streams.head(file.path, HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n"),
        FieldNames.of(file.settings).named,
    )
    if is_columnar(start):
        return FORMATS["parquet"]
    of_rooms = [FORMAT_NAMES.instance(name, Format) for name in offered(FORMAT_NAMES.group)]
    if found := _first(of_rooms, file, start, is_binary=True):
        return found
    streams.require_text(file.path, start)
    if found := _first(of_rooms, file, start, is_binary=False):
        return found
    if re.match(rb"<doc\s[^>]*\bid=", start):
        return FORMATS["doc-text"]
    if start[:5] == b"<DOC>":
        return FORMATS["trec"]
    if root := ROOT.match(start):
        return _tagged_format(file, root[1].decode())
    if start[:1] == b"{":
        return FORMATS["json-lines"] if named else _json_format(file.path, start)
    if start[:1] == b"[" and _begins_json_list(start):
        raise InputError(
            f"{file.path} is one JSON array, but a corpus has one JSON object a line. Convert it, for instance "
            f"with jq -c '.[]'."
        )
    if b"<page>" in start and b"<revision>" in start:
        raise _fragment(file)
    return FORMATS["table"] if named else _table_or_text(file, start.decode(errors="replace"))


def _first(formats: Sequence[Format], file: CorpusFile, start: bytes, *, is_binary: bool) -> Format | None:
    """The first of the formats that a file looks like, among those that are text or those that are not."""
    fitting = (each for each in formats if each.looks and each.is_binary == is_binary and each.looks(file, start))
    return next(fitting, None)


def _tagged_format(file: CorpusFile, root: str) -> Format:
    if root == "mediawiki":
        return FORMATS["dump"]
    if root in ("page", "revision", "siteinfo"):
        raise _fragment(file)
    raise InputError(
        f"{file.path} is tagged text with the root element <{root}>, and no reader knows it. Extract its text, for instance as JSON "
        "lines with title and text. If it is plain text, say --format text."
    )


def _fragment(file: CorpusFile) -> InputError:
    return InputError(
        f"{file.path} is a fragment of a MediaWiki dump: its pages are not between <mediawiki> and </mediawiki>. Name the whole "
        "dump, or write these tags around the pages."
    )


def _begins_json_list(start: bytes) -> bool:
    """Return whether a text is a JSON list of values, and not prose that begins with a bracket, such as a footnote."""
    return re.match(rb'\[\s*(?:[\]\[{"]|-?\d+(?:\.\d+)?\s*,|true\b|false\b|null\b)', start) is not None


def first_object(path: Path, start: bytes) -> Any:
    """Return the first value of JSON lines that begin with `start`. Raises ValueError or RecursionError for what is none."""
    line, newline, _ = start.partition(b"\n")
    if not newline and len(start) > HEAD_BYTES // 2:  # it is longer than what was read
        line = streams.head(path, FIRST_OBJECT_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return json.loads(line)


def _json_format(path: Path, start: bytes) -> Format:
    try:
        first = first_object(path, start)
    except (ValueError, RecursionError):
        return FORMATS["squad" if b'"data"' in start and b'"paragraphs"' in start else "json-lines"]
    if isinstance(data := first.get("data"), list) and all(
        isinstance(each, dict) and "paragraphs" in each for each in data[:1]
    ):
        return FORMATS["squad"]
    is_extracted = {"id", "title", "text"} <= first.keys() and "curid=" in str(first.get("url"))
    return FORMATS["wikiextractor" if is_extracted else "json-lines"]


def _table_or_text(file: CorpusFile, start: str) -> Format:
    """Tell a table with a known header from plain text. Raises InputError for any other table."""
    path, (first, said) = file.path, first_row(start)
    if first.strip().split("\t") == ["id", "text", "title"]:
        return FORMATS["dpr"]
    if records.is_header(header(first, file.settings.column_delimiter or said)):
        return FORMATS["table"]
    lines = [line.strip() for line in start.split("\n")[:TABLE_ROWS] if line.strip()]
    if len(lines) > 1 and all(map(MULTISTREAM_LINE.fullmatch, lines[:-1])):
        raise InputError(
            f"{path} is the index of a multistream dump: it names pages and has no text. Name the dump itself, whose name has no "
            "-index, and which is read as it is."
        )
    for delimiter in sorted(DELIMITERS, key=lambda each: each != delimiter_of(first)):
        rows = _rows(start, delimiter)
        if _is_table(rows, delimiter):
            hint = "ms-marco" if all(map(MS_MARCO_LINE.fullmatch, lines)) else "text"
            raise InputError(
                f"{path} looks like a table of {len(rows[0])} columns separated by {DELIMITERS[delimiter]}, and its first line "
                f"({', '.join(rows[0])[:80]}) does not say which column is the text. Name the column with --text-field if this is a header. "
                f"Otherwise add one such as id, title, text, or say what the file is, for instance --format {hint} ({ALL_FORMATS})."
            )
    if file.ending in ENDINGS_OF_DATA:
        raise InputError(
            f"{path} would be read as plain text, and its name ends in {file.ending}. Correct the file, say --delimiter and --text-field "
            f"if it is a table, or say what it is, for instance --format text ({ALL_FORMATS})."
        )
    return FORMATS["text"]


def _rows(start: str, delimiter: str) -> list[list[str]]:
    """Return the first rows that are not empty. The last one may be cut, and is left out if there are others."""
    found = list[list[str]]()
    quoting: Any = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    try:
        for row in csv.reader(io.StringIO(start, newline="\n"), delimiter=delimiter, quoting=quoting):
            if row:
                found.append(row)
            if len(found) > TABLE_ROWS:
                break
    except csv.Error:
        return []
    return found[:-1] if len(found) > 2 else found


def _is_table(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Return whether all rows have the same number of columns, at least 2, and no space follows a comma or a semicolon of the
    first, as it does in prose.
    """
    if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    if delimiter in "\t|":
        return delimiter == "\t" or len(rows) > 1
    return len(rows) > 1 and not any(cell.startswith(" ") for cell in rows[0][1:])
