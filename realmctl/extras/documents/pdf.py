"""Read PDF files by pdfium, of the extra `documents`: a paragraph, a heading or a list item is a line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Found
from realmctl.corpus.fields import kept
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.errors import InputError, require_package
from realmctl.extras.documents import apart
from realmctl.extras.documents.html_lines import LONGEST_META
from realmctl.extras.documents.leads import document_of_lines, led_lines
from realmctl.extras.documents.page_layout import LaidOutPage, Line, body_size, in_columns, paragraphs, title_of
from realmctl.inputs import streams

MAX_PDF_BYTES = 2**28
MAX_PDF_PAGES = 20_000
MAX_PDF_LINES = 2**21
UNKNOWN_SHARE = 0.05
"""Share of characters that a font does not name; with more the text is not worth reading. Fewer become spaces."""
DATE = re.compile(r"D:([12][0-9]{3})(?:(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])?)?")
"""How a PDF writes a date."""
NO_TITLE = re.compile(
    r"untitled.*|microsoft (?:word|powerpoint)\b.*|.*\.(?:docx?|odt|tex|dvi|indd|qxd|pdf|rtf|pptx?|xlsx?|html?)",
    re.IGNORECASE,
)
"""Titles that programs write."""


def read_pdf(file: CorpusFile) -> Iterator[Found]:
    """Yield a PDF as one document, titled by its metadata, or by the largest line of its first page, or by its file.

    Raises:
        InputError: The file is damaged or too large, needs a password, or has no text.
        ResourceError: pypdfium2 is not installed.
    """
    require_package("pypdfium2", "documents", f"{file.path} is a PDF, and reading it")
    said, pages, lost = _pages(file)
    found = list(paragraphs(pages))
    if not found:
        raise _unreadable(
            file, "it has no text, so its pages may be pictures. Make their text by OCR, for instance with ocrmypdf"
        )
    title = said.pop("title") or title_of(pages[0], body_size(pages)) or file.stem.replace("_", " ")
    lines = led_lines([(each.text, -each.heading) for each in found], {})
    document = document_of_lines(file.name, title, lines, str(file.path), kept(said), [each.page for each in found])
    yield replace(document, lost=lost)


def _pages(file: CorpusFile) -> tuple[dict[str, str], list[LaidOutPage], str]:
    """The metadata of a PDF, with an empty title where it has none that says something, its pages, and what of them has no text. Another process reads them."""
    data, limits = streams.whole_bytes(file.path, MAX_PDF_BYTES), (MAX_PDF_PAGES, MAX_TEXT_FILE, MAX_PDF_LINES)
    program: list[str | Path] = [sys.executable, "-P", Path(__file__).with_name("pdf_lines.py"), *map(str, limits)]
    parsed = apart.parse(program, data, apart.MAX_PARSE_MEMORY + 2 * len(data))
    if parsed.stopped:
        raise _unreadable(file, f"{parsed.stopped}. Split it")
    if parsed.code:
        raise _unreadable(
            file, f"it takes more than {apart.MAX_PARSE_MEMORY // 2**30} GiB of memory, or is damaged. Save it anew"
        )
    first, *pages = map(json.loads, parsed.output.splitlines())
    for said in (first, *pages[-1:]):
        if "error" in said:
            raise _unreadable(file, f"{said['error']}. Save it anew")
    characters = sum(len(line["text"]) for page in pages for line in page["lines"])
    if (unknown := sum(page["unknown"] for page in pages)) > UNKNOWN_SHARE * (characters + unknown):
        raise _unreadable(
            file,
            f"its fonts do not say which characters {unknown:,} of its glyphs show. Make its text by OCR, for instance with ocrmypdf",
        )
    title, date = " ".join(first["Title"].split()), DATE.match(first["CreationDate"])
    metadata = {
        "title": "" if NO_TITLE.fullmatch(title) else title,
        "author": first["Author"][:LONGEST_META],
        "date": "-".join(filter(None, date.groups())) if date else "",
    }
    pictures = [number for number, page in enumerate(pages, 1) if page["is_picture"]]
    lost = [
        f"{len(pictures)} of its {len(pages)} pages, being pictures (the first is page {pictures[0]})"
        if pictures
        else "",
        f"{unknown:,} of its {characters + unknown:,} characters, which its fonts do not name" if unknown else "",
        "the fields of its form (XFA)" if first["is_xfa"] else "",
    ]
    found = [LaidOutPage(in_columns([*map(_line, page["lines"])]), page["height"]) for page in pages]
    return metadata, found, " and ".join(filter(None, lost))


def _line(told: dict[str, Any]) -> Line:
    return Line(**{**told, "parts": tuple(map(_line, told.get("parts", ())))})


def _unreadable(file: CorpusFile, why: str) -> InputError:
    return InputError(f"{file.path}: this PDF cannot be read, because {why}, or leave the file out.")
