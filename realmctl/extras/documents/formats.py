"""The formats of documents with markup or a layout, and how each is recognised. The first that fits is taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from realmctl.corpus.corpus_file import HTML_ENDINGS, CorpusFile
from realmctl.corpus.document import Found
from realmctl.corpus.formats.detect import ROOT
from realmctl.corpus.formats.format import Format
from realmctl.errors import InputError
from realmctl.extras.documents import (
    bibliographies,
    by_pandoc,
    calendars,
    html_lines,
    json_files,
    kilt,
    mail,
    office,
    pages,
    pdf,
    subtitles,
    web_archives,
    wiki_exports,
)

HTML_ROOTS = html_lines.BLOCKS | {
    "html",
    "head",
    "meta",
    "title",
    "link",
    "style",
    "script",
    "center",
    "font",
    "span",
    "a",
    "b",
    "i",
}
OTHER_ROOTS = frozenset({"mediawiki", "doc"})
"""Roots of other formats, whatever the name of the file."""
PDF_HEADER_BYTES = 1024
"""Where the header of a PDF may begin; programs for mail and the web put lines before it."""
ZIP, RTF = b"PK\x03\x04", b"{\\rtf"
JATS_DOCTYPE = re.compile(rb"<!DOCTYPE\s+article\b[^<>]*//NLM//DTD ", re.IGNORECASE)
MAN_PAGE = re.compile(rb"^\.(TH|Dd)\b|\A\.(so) \S+\s*\Z", re.MULTILINE)
"""A command of the title of a man page, or all of a page that names another. BSD's pages begin with a date."""
SQL = re.compile(rb"^\s*(?:INSERT\s+INTO|CREATE\s+TABLE|COPY\s+\S+.*\bFROM\s+stdin)\b", re.IGNORECASE | re.MULTILINE)
MARKDOWN_ENDINGS = (".md", ".markdown", ".mdx", ".mkd")


def _is_pdf(file: CorpusFile, start: bytes) -> bool:
    return start.startswith(b"%PDF-") or (file.ending == ".pdf" and b"%PDF-" in start[:PDF_HEADER_BYTES])


def _is_html(file: CorpusFile, start: bytes) -> bool:
    if root := ROOT.match(start):
        name = root[1].decode().lower()
        return name in HTML_ROOTS or (file.ending in HTML_ENDINGS and name not in OTHER_ROOTS)
    return file.ending in HTML_ENDINGS and start[:1] not in (b"{", b"[")


def _is_manual(file: CorpusFile, start: bytes, *, bsd: bool) -> bool:
    command = MAN_PAGE.search(start) if start[:1] in (b".", b"'") else None
    return command is not None and (command[1] == b"Dd") == bsd


def _by_ending(file: CorpusFile, start: bytes, *, name: str) -> bool:
    return by_pandoc.MARKUP_ENDINGS.get(file.ending) == name


def _of_bibliography(file: CorpusFile, start: bytes, *, name: str) -> bool:
    return bibliographies.ENDINGS.get(file.ending) == name


def _is_zipped(file: CorpusFile, start: bytes, *, name: str) -> bool:
    return start.startswith(ZIP) and file.ending[1:] == name


def _is_sql(file: CorpusFile, start: bytes) -> bool:
    return file.ending == ".sql" and SQL.search(start) is not None


def _refuse_sql(file: CorpusFile) -> Iterator[Found]:
    raise InputError(
        f"{file.path} is SQL, such as a dump of a database, which no reader knows. Export the table with the texts as CSV or JSON lines, or say "
        "--format text if the statements are the text."
    )


LOOKS: dict[str, Callable[[CorpusFile, bytes], bool]] = {
    **{name: partial(_is_zipped, name=name) for name in office.READ},
    "rtf": lambda file, start: start.startswith(RTF),
    "jats": lambda file, start: JATS_DOCTYPE.search(start) is not None,
    "man": partial(_is_manual, bsd=False),
    "mdoc": partial(_is_manual, bsd=True),
}
"""How those are recognised whose ending does not say it."""


def _document(name: str) -> Format:
    is_office = name in office.READ
    return Format(
        f"{office.READ[name] if is_office else by_pandoc.READ[name]}, one document a file",
        partial(office.read_office if is_office else by_pandoc.read_by_pandoc, name=name),
        is_one=True,
        is_binary=is_office or name == "rtf",
        looks=LOOKS.get(name, partial(_by_ending, name=name)),
    )


MARKED = [name for name in by_pandoc.READ if name not in LOOKS]
FORMATS: dict[str, Format] = {
    "pdf": Format("PDF, one document a file", pdf.read_pdf, is_one=True, is_binary=True, looks=_is_pdf),
    **{name: _document(name) for name in MARKED},
    "markdown": Format(
        "Markdown, one document a file",
        pages.read_markdown,
        is_one=True,
        looks=lambda file, start: file.ending in MARKDOWN_ENDINGS,
    ),
    **{name: _document(name) for name in LOOKS},
    "mail": Format(
        "mail, one document a message",
        mail.read_mail,
        looks=lambda file, start: file.ending in mail.ENDINGS or mail.is_mail(start),
    ),
    "html": Format("HTML, one document a file", pages.read_html, is_one=True, looks=_is_html),
    "subtitles": Format(
        "subtitles, one document a file", subtitles.read_subtitles, is_one=True, looks=subtitles.is_subtitles
    ),
    "icalendar": Format("calendar, one document an entry", calendars.read_calendar, looks=calendars.is_calendar),
    "warc": Format(
        "archive of web pages (WARC)", web_archives.read_web_archive, is_binary=True, looks=web_archives.is_web_archive
    ),
    **{
        name: Format(
            f"{called}, one document an entry",
            partial(bibliographies.read_bibliography, name=name),
            looks=partial(_of_bibliography, name=name),
        )
        for name, called in bibliographies.READ.items()
    },
    "sql": Format("SQL", _refuse_sql, looks=_is_sql),
    "elasticsearch": Format(
        "bulk file of Elasticsearch or CirrusSearch",
        wiki_exports.read_bulk,
        looks=wiki_exports.is_bulk,
        has_fields=True,
    ),
    "enterprise": Format("Wikimedia Enterprise", wiki_exports.read_enterprise, looks=wiki_exports.is_enterprise),
    "kilt": Format("KILT knowledge source", kilt.read_kilt, looks=kilt.is_kilt),
    "json": Format("JSON objects", json_files.read_json, looks=json_files.is_json, has_fields=True),
}
