"""Documents in rows with named fields: JSON lines, CSV and TSV with a header, Parquet and Arrow.

The names of the fields are those of BEIR, FlashRAG, Pyserini and KILT, or those that the user gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document
from realmctl.corpus.fields import kept
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError, listed
from realmctl.inputs.rows import Row, columnar, first_of, is_number, json_lines, table

IDS = ("id", "_id", "docid", "doc_id", "docno", "document_id", "pid", "passage_id", "psg_id", "wikipedia_id")
TITLES = ("title", "wikipedia_title", "headline")
TEXTS = ("text", "contents", "body", "content", "passage", "page_content")
"""Names of fields and columns, in any case. The first that a row has counts."""
MAX_TITLE_LINE = 300


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Fields or columns that a user named as those of id, title and text, and those that are kept beside. Empty: any of IDS, TITLES and TEXTS."""

    id: str = ""
    title: str = ""
    text: str = ""
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: CorpusSettings) -> FieldNames:
        return cls(settings.id_field, settings.title_field, settings.text_field, settings.kept_fields)

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.id,) if self.id else IDS

    @property
    def titles(self) -> tuple[str, ...]:
        return (self.title,) if self.title else TITLES

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.text else TEXTS

    @property
    def named(self) -> tuple[str, ...]:
        """The names that the user gave."""
        return tuple(name for name in (self.id, self.title, self.text) if name)

    def lower(self) -> FieldNames:
        return FieldNames(self.id.lower(), self.title.lower(), self.text.lower(), tuple(map(str.lower, self.kept)))

    def require_columns(self, columns: Collection[str], where: str) -> None:
        """Raise InputError unless the columns of a table have all names that the user gave, also those that are kept."""
        self.require_in(columns, where)
        known = {*map(str.lower, columns)}
        if missing := [name for name in map(str.lower, self.kept) if not known & {name, name.partition(".")[0]}]:
            raise InputError(
                f"{where}: no column is named {' or '.join(missing)}. There are: {listed(columns)}. Correct --keep-fields."
            )

    def require_in(self, names: Collection[str], where: str) -> None:
        """Raise InputError unless the names that the user gave for id, title and text are among these, or begin with one and a dot."""
        if missing := [name for name in self.named if name not in names and name.partition(".")[0] not in names]:
            raise InputError(
                f"{where}: no field or column is named {' or '.join(missing)}. There are: {listed(names)}. "
                "Correct --id-field, --title-field or --text-field."
            )


KNOWN_NAMES = FieldNames()


def read_json_lines(file: CorpusFile) -> Iterator[Document]:
    """Yield the documents of JSON lines: one object a line."""
    return _documents(file, json_lines(file.path), FieldNames.of(file.settings))


def read_table(file: CorpusFile) -> Iterator[Document]:
    """Yield the documents of a CSV or TSV file with named columns. Raises InputError naming file and line."""
    columns, rows = table(file.path, file.settings.column_delimiter)
    names = FieldNames.of(file.settings).lower()
    names.require_columns(columns, f"{file.path}:1")
    if not is_header(columns, names):
        raise InputError(
            f"{file.path}:1: the header names {listed(columns)}. A table needs a column for the text "
            f"({', '.join(TEXTS)}) and one for the id or the title ({', '.join((*IDS, *TITLES))}). If they have other names, say "
            "--text-field, --title-field and --id-field. If something else than a tab, a comma, a semicolon or a bar is between "
            "them, say --delimiter."
        )
    yield from _documents(file, rows, names)


def is_header(columns: list[str], names: FieldNames = KNOWN_NAMES) -> bool:
    """Return whether the columns hold a text and, unless the user named the column of the text, an id or a title."""
    columns_of_a_document = {*columns} & {*names.texts} and (names.text or {*columns} & {*names.ids, *names.titles})
    return bool(columns_of_a_document) and len(set(columns)) == len(columns)


def read_columnar(file: CorpusFile) -> Iterator[Document]:
    """Yield the documents of a Parquet or Arrow file. Raises InputError naming file and row."""
    names = FieldNames.of(file.settings)
    named = (*names.ids, *names.titles, *names.texts, *names.kept, *map(str.lower, names.kept))
    columns = {*named, *heads(named)}
    rows = columnar(
        file.path,
        tuple(columns),
        needed=tuple(columns & {*names.texts, *heads(names.texts)}),
        advice="Name the column of the text with --text-field.",
    )
    for number, row in enumerate(rows):
        if not number:
            names.require_columns(row.fields, str(file.path))
        yield from _documents(file, [row], names)


def _documents(file: CorpusFile, rows: Iterable[Row], names: FieldNames) -> Iterator[Document]:
    for row in rows:
        names.require_in(row.fields, row.where)
        yield document_of(row, f"{file.name}-{row.number}", names)


def document_of(row: Row, substitute: str, names: FieldNames = KNOWN_NAMES) -> Document:
    """Return the document of a row. A text of null is an empty one, and a number is a title as it is written.

    Args:
        row: the row.
        substitute: the id of a document without one.
        names: the fields that the user named.

    Raises:
        InputError: there is no text, or a field has another type.
    """
    fields, where = {**{name.lower(): value for name, value in row.fields.items()}, **row.fields}, row.where
    for path in (name for name in (*names.named, *names.kept) if "." in name and name not in fields):
        if (value := _at(row.fields, path)) is not None:
            fields[path] = value
    identity, title, text = (first_of(fields, wanted) for wanted in (names.ids, names.titles, names.texts))
    if text is None and not {*fields} & {*names.texts}:
        raise InputError(
            f"{where}: this is not a document, since it has no text under {', '.join(names.texts)}. It has "
            f"{listed(row.fields)}. If the text has another name, say --text-field NAME."
        )
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = "\n".join(part.strip() for part in text)
    if is_number(title):
        title = str(title)
    _require(text, str | None, "text", "a text or a list of texts", where)
    _require(title, str | None, "title", "a text", where)
    if type(identity) is not int:
        _require(identity, str | None, "id", "a text or a whole number", where)
    text = text or ""
    if title is None and "contents" in fields and not names.named:
        first, newline, rest = text.partition("\n")
        title, text = (first.strip().strip('"'), rest) if newline and len(first) <= MAX_TITLE_LINE else ("", text)
    return Document(
        encodable(str(identity) if str(identity or "").strip() or identity == 0 else substitute, where),
        encodable(title or "", where),
        encodable(text, where),
        fields=kept({name: fields[name] for name in names.kept if name in fields}),
        where=where,
    )


def heads(names: Iterable[str]) -> set[str]:
    """What paths such as `article.body` begin with: `article`."""
    return {name.partition(".")[0] for name in names}


def _at(fields: Any, path: str) -> Any:
    """The value at a path such as `article.body` in nested objects; None where there is none."""
    for name in path.split("."):
        fields = fields.get(name) if isinstance(fields, Mapping) else None
    return fields


def _require(value: Any, wanted: Any, name: str, needed: str, where: str) -> None:
    if not isinstance(value, wanted):
        kind = {"WrittenFloat": "number with a fraction", "bool": "truth value"}.get(
            type(value).__name__, type(value).__name__
        )
        raise InputError(
            f"{where}: its {name} is a {kind}, {str(value)[:60]!r}, and {needed} is needed. Correct or remove it."
        )


def encodable(text: str, where: str) -> str:
    """Return the text. Raises InputError naming `where` for half of a surrogate pair, which JSON allows and UTF-8 does not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: half a surrogate pair at character {error.start}, which cannot be written as UTF-8. Correct or remove the line."
        ) from None
    return text
