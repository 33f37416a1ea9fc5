"""Read pages of HTML and Markdown as text: a paragraph, a heading, a list item, a row of a table or a line of code is a line.

Markdown becomes HTML by markdown-it-py (CommonMark with tables and text that is struck out), and HTML is parsed by selectolax, both of the extra `documents`. A process of its own
does both, one for many pages (html_lines.py): neither time nor memory of a parser is bounded by the size of what it reads.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

import yaml

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Dropped, Found, SkippedPage
from realmctl.corpus.fields import NOTHING as NO_FIELDS
from realmctl.corpus.fields import Fields, kept
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.errors import require_package
from realmctl.extras.documents import apart
from realmctl.extras.documents.charsets import html_text
from realmctl.extras.documents.leads import document_of_lines
from realmctl.extras.documents.repeated import NOTHING, Repeated, repeated_beside
from realmctl.inputs import streams
from realmctl.pipeline.plain_yaml import PlainLoader

FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
LARGEST_FRONT_MATTER = 2**16
"""Longest front matter of a Markdown file, in characters. A longer one is text."""
FRONT_LINE = re.compile(r"(?:[\w.-]+[ \t]*[:=]|[ \t#\-\]}]|$)")
FRONT_TITLE = re.compile(r"^title:[ \t]*(\S.*?)[ \t]*\r?$", re.MULTILINE)
MDX_CODE = re.compile(r"\A(?:\s*(?:import|export)\b[^\n]*(?:\n|\Z))+")
PARSER = apart.ManyParses("realmctl.extras.documents.html_lines")


def read_html(file: CorpusFile) -> Iterator[Found]:
    """Yield a page of HTML as one document, titled by `<title>`, or by its first heading, or by its file."""
    require_package("selectolax", "documents", f"{file.path} is HTML, and reading it")
    yield document_of(file, "html", html_text(file.path), repeated=repeated_beside(file, PARSER))


def read_markdown(file: CorpusFile) -> Iterator[Found]:
    """Yield a Markdown file as one document, titled by its front matter, or by its first heading, or by its file."""
    require_package("selectolax", "documents", f"{file.path} is Markdown, and reading it")
    require_package("markdown_it", "documents", f"{file.path} is Markdown, and reading it")
    text, title, fields = _without_front_matter(streams.whole_text(file.path, MAX_TEXT_FILE))
    if file.ending == ".mdx":
        text = MDX_CODE.sub("", text)
    yield document_of(file, "markdown", text, title, fields=fields)


def document_of(
    file: CorpusFile,
    kind: Literal["html", "content", "markdown", "rst", "man", "wiki"],
    text: str,
    title: str = "",
    repeated: Repeated = NOTHING,
    fields: Fields = NO_FIELDS,
) -> Found:
    """A page as a document, titled by `title`, or by `<title>`, or by its first heading, or by its file; `Dropped` if it is empty, `SkippedPage` if it is
    nested too deeply or takes too much time or memory.

    kind: What the text is: HTML, or Markdown; of HTML all is content that was made of another format (`content`), or by pandoc of
    reStructuredText or a man page; of a page of a wiki (`wiki`) the prose. repeated: What the pages of its folder have in common. fields: What it says of itself before its text.
    """
    page, why = PARSER.parse({"kind": kind}, text.encode(errors="replace"))
    if page is None or "aside" in page:
        return SkippedPage(file.name, title, why if page is None else page["aside"], str(file.path))
    lines = repeated.without(page["lines"], "".join(page["titles"]))
    first_heading = next((line for line, _, is_heading in lines if is_heading), "")
    title = next(filter(None, (title, *page["titles"], first_heading)), "")
    if not lines and not title:
        return Dropped(file.name, "empty")
    title = title or file.stem.replace("_", " ")
    return document_of_lines(file.name, title, lines, str(file.path), {**kept(page["fields"]), **fields})


class _Loader(PlainLoader, types=("null",)):
    """YAML whose values are texts as they stand, such as 1.10, 12:30, 2024-05-01 and yes, or null."""


def _without_front_matter(text: str) -> tuple[str, str, Fields]:
    """The text of a Markdown file behind its front matter in YAML or TOML, the title there, and the other fields; the whole text where it has none."""
    found = FRONT_MATTER.match(text)
    if not found or found.end(2) > LARGEST_FRONT_MATTER or not all(map(FRONT_LINE.match, found[2].splitlines())):
        return text, "", NO_FIELDS
    named = FRONT_TITLE.search(found[2])
    title: object = named[1] if named else None
    fields: Fields = NO_FIELDS
    with suppress(ValueError, RecursionError, yaml.YAMLError, AttributeError):
        matter = yaml.load(found[2], _Loader) if found[1] == "---" else tomllib.loads(found[2], parse_float=str)
        title = matter.get("title")
        fields = kept({name: value for name, value in matter.items() if name != "title"})
    title = "" if title is None or isinstance(title, list | dict) else " ".join(str(title).split())
    return text[found.end() :], title, fields
