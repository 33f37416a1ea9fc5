"""Wikipedia as a corpus: MediaWiki dumps, and what WikiExtractor makes of them, with `--json` or without.

WikiExtractor (github.com/attardi/wikiextractor) writes JSON lines, or `<doc id="7" url="..." title="Rome">`, the title, a blank
line, the text and `</doc>`. It escapes entities, and with `--links` it keeps links as `<a href>`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found, Link, SkippedPage
from realmctl.corpus.fields import kept
from realmctl.corpus.formats.records import read_json_lines
from realmctl.corpus.formats.tagged import elements
from realmctl.corpus.languages import variants_of
from realmctl.corpus.wiki import dump, wikitext
from realmctl.corpus.wiki.dump_parts import DumpPart
from realmctl.corpus.wiki.namespaces import Namespaces, namespaces
from realmctl.errors import InputError

DOC_ID = re.compile(r'\bid="([^"]*)"')
DOC_TITLE = re.compile(r'\btitle="(.*?)"(?=\s*>\s*$|\s+\w+=")')
"""WikiExtractor does not escape the quotes of a title, so it ends before another attribute or the end of the tag."""
ATTRIBUTE = re.compile(r'\b(\w+)="([^"]*)"')
LINK = re.compile(r'<a href="([^"<>]*)"[^<>]*>([^<]*)</a>|</?a\b[^<>]*>')


def read_dump(file: CorpusFile, part: DumpPart = dump.WHOLE) -> Iterator[Found]:
    """Yield the articles of a MediaWiki dump, or of a part of it. Redirects, other namespaces, disambiguation pages and lists are
    dropped.
    """
    path, site = file.path, dump.Site()
    clean = None
    for page in dump.pages(path, site, part):
        if reason := dump.skip_page(page) or dump.skip_title(page.title, file.settings.keep_lists):
            yield Dropped(page.id, reason)
            continue
        clean = clean or of_wikitext(site.namespaces, site.language, file.settings.language)
        where = f"{path}, page {page.title!r}"
        if page.oversized:
            yield SkippedPage(page.id, page.title, f"its text is above {dump.MAX_PAGE_BYTES // 2**20} MiB", where)
        else:
            yield Document(page.id, page.title, page.text, clean=clean, where=where)


def of_wikitext(names: Mapping[str, int], language: str, wanted: str) -> Callable[[Document], Document]:
    """Return what makes prose of a page's wikitext. names, language: of the site. wanted: the language of `chunk`."""
    return partial(_from_wikitext, site=namespaces(names, language, variants_of(wanted, language)))


def _from_wikitext(document: Document, site: Namespaces) -> Document:
    text, links = wikitext.prose(document.text, site)
    return replace(document, text=text, links=links, clean=None)


def read_wikiextractor(file: CorpusFile) -> Iterator[Found]:
    """Yield the articles of WikiExtractor's `--json` output."""
    for page in read_json_lines(file):
        yield _article(page, file)


def read_doc_text(file: CorpusFile) -> Iterator[Found]:
    """Yield the articles of WikiExtractor's text output, with the attributes that `--keep-fields` names, such as url."""
    names = {*file.settings.kept_fields}
    for where, first, lines in elements(file.path, "<doc ", "</doc>"):
        identity, title = DOC_ID.search(first), DOC_TITLE.search(first)
        if not identity:
            raise InputError(f"{where}: a <doc> without an id. Correct the line.")
        fields = kept({name: html.unescape(value) for name, value in ATTRIBUTE.findall(first) if name in names})
        page = Document(identity[1], title[1] if title else "", "\n".join(lines), fields=fields, where=where)
        yield _article(page, file)


def _article(page: Document, file: CorpusFile) -> Found:
    """Return a page of WikiExtractor, which writes all pages of a dump, unless its title says that it is no article."""
    if reason := dump.skip_title(page.title, file.settings.keep_lists):
        return Dropped(page.id, reason)
    return replace(page, clean=_from_wikiextractor)


def _from_wikiextractor(document: Document) -> Document:
    """Unescape entities, turn <a href="Target">label</a> into links, and drop the title line."""
    text = document.text.replace("\r\n", "\n")
    first, _, rest = text.partition("\n")
    title = html.unescape(document.title)
    text = html.unescape(rest.lstrip("\n") if html.unescape(first).strip() == title else text)
    out, links, length, done = list[str](), list[Link](), 0, 0
    for match in LINK.finditer(text):
        label = match[2] or ""
        before = text[done : match.start()]
        start, done = length + len(before), match.end()
        length = start + len(label)
        out += (before, label)
        if match[1] and label.strip():
            links.append((start, length, link_target(match[1])))
    return replace(document, title=title, text="".join([*out, text[done:]]), links=tuple(links), clean=None)


def link_target(href: str) -> str:
    """Return the title of the page that a link names: `Tiber_%28river%29#Source` is Tiber (river)."""
    title = unquote(href).partition("#")[0].replace("_", " ").strip()
    return title[:1].upper() + title[1:]
