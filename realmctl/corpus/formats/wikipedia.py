"""Wikipedia as a corpus: MediaWiki dumps, and what WikiExtractor makes of them, with `--json` or without.

WikiExtractor (github.com/attardi/wikiextractor) writes JSON lines, or `<doc id="7" url="..." title="Rome">`, the title, a blank
line, the text and `</doc>`. It escapes entities, and with `--links` it keeps links as `<a href>`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from realmctl.corpus.document import Document, Dropped, Found, Link, SkippedPage
from realmctl.corpus.formats.records import read_json_lines
from realmctl.corpus.formats.tagged import elements
from realmctl.corpus.wiki import dump, wikitext
from realmctl.corpus.wiki.dump_parts import DumpPart
from realmctl.corpus.wiki.namespaces import Namespaces, namespaces
from realmctl.errors import InputError

DOC_ATTRIBUTE = re.compile(r'\b(id|title)="([^"]*)"')
LINK = re.compile(r'<a href="([^"<>]*)"[^<>]*>([^<]*)</a>|</?a\b[^<>]*>')


def read_dump(path: Path, part: DumpPart = dump.WHOLE) -> Iterator[Found]:
    """Yield the articles of a MediaWiki dump, or of a part of it. Redirects, other namespaces and disambiguation pages are dropped."""
    site = dump.Site()
    clean = None
    for page in dump.pages(path, site, part):
        if reason := dump.skip_page(page):
            yield Dropped(reason)
            continue
        clean = clean or partial(_from_wikitext, site=namespaces(site.namespaces, site.language))
        where = f"{path}, page {page.title!r}"
        if page.oversized:
            yield SkippedPage(page.id, page.title, f"its text is above {dump.MAX_PAGE_BYTES // 2**20} MiB", where)
        else:
            yield Document(page.id, page.title, page.text, clean=clean, where=where)


def _from_wikitext(document: Document, site: Namespaces) -> Document:
    text, links = wikitext.prose(document.text, site)
    return replace(document, text=text, links=links, clean=None)


def read_wikiextractor(path: Path) -> Iterator[Document]:
    """Yield the documents of WikiExtractor's `--json` output."""
    return (replace(document, clean=_from_wikiextractor) for document in read_json_lines(path))


def read_doc_text(path: Path) -> Iterator[Document]:
    """Yield the documents of WikiExtractor's text output."""
    for where, first, lines in elements(path, "<doc ", "</doc>"):
        attributes = dict(DOC_ATTRIBUTE.findall(first))
        if "id" not in attributes:
            raise InputError(f"{where}: a <doc> without an id. Correct the line.")
        title, text = attributes.get("title", ""), "\n".join(lines)
        yield Document(attributes["id"], title, text, clean=_from_wikiextractor, where=where)


def _from_wikiextractor(document: Document) -> Document:
    """Unescape entities, turn <a href="Target">label</a> into links, and drop the title line."""
    text = document.text.replace("\r\n", "\n")
    first, _, rest = text.partition("\n")
    text = html.unescape(rest.lstrip("\n") if first.strip() == document.title else text)
    out, links, length, done = list[str](), list[Link](), 0, 0
    for match in LINK.finditer(text):
        label = match[2] or ""
        before = text[done : match.start()]
        start, done = length + len(before), match.end()
        length = start + len(label)
        out += (before, label)
        if match[1] and label.strip():
            links.append((start, length, link_target(match[1])))
    title, text = html.unescape(document.title), "".join([*out, text[done:]])
    return replace(document, title=title, text=text, links=tuple(links), clean=None)


def link_target(href: str) -> str:
    """Return the title of the page that a link names: `Tiber_%28river%29#Source` is Tiber (river)."""
    title = unquote(href).partition("#")[0].replace("_", " ").strip()
    return title[:1].upper() + title[1:]
