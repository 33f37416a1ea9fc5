"""Read MediaWiki `pages-articles` dumps as a stream of pages, by SAX in bounded memory.

The format is mediawiki.org/wiki/Help:Export. A dump comes from outside, so document types (entity bombs) are refused,
and text nodes, tags and nesting have limits. A dump that does not end in `</mediawiki>` is an error with its position.
The filters are those of ORQA's preprocessing (language/orqa/preprocessing).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from realmctl.corpus.wiki.dump_parts import DumpPart
from realmctl.corpus.wiki.markup import drop_hidden
from realmctl.data import table
from realmctl.errors import InputError
from realmctl.inputs.streams import head

MAX_PAGE_BYTES = 16 * 2**20
MAX_FIELD_CHARS = 2**12
MAX_TAG_BYTES = 2**22
MAX_DEPTH = 16
FEED_BYTES = 2**18
FIELDS = {
    ("mediawiki", "page", "title"): "title",
    ("mediawiki", "page", "ns"): "namespace",
    ("mediawiki", "page", "id"): "id",
    ("mediawiki", "page", "revision", "model"): "model",
    ("mediawiki", "page", "revision", "text"): "text",
}
NAMESPACE = ("mediawiki", "siteinfo", "namespaces", "namespace")
_PAGES = table("wikitext")
"""What titles, templates and redirects say of a page, by language."""
LISTS, ENDINGS_OF_LISTS = (
    tuple(each for listed in _PAGES[kind].values() for each in listed) for kind in ("lists_begin", "lists_end")
)
IN_TITLES = re.compile(rf"\(disambiguation\)|[(（](?:{'|'.join(_PAGES['disambiguation_titles'].values())})[)）]$")
WHOLE = DumpPart()
ROOT = re.compile(r"(?:<\?xml[^<>]*\?>)?\s*<mediawiki\b([^<>]*)>")
LANGUAGE = re.compile(r"""\bxml:lang\s*=\s*["']([\w-]{1,32})["']""")
REDIRECT = re.compile(rf"\s*#\s*(?:{'|'.join(_PAGES['redirects'].values())})\s*:?\s*\[\[", re.IGNORECASE)


def _disambiguation(kinds: str, **by_language: str) -> re.Pattern[str]:
    """Return the pattern of the template that marks a disambiguation page, by the names that it has in each language."""
    names = "|".join(by_language.values()).replace("{kinds}", kinds).replace("\n", "").replace(" ", "[ _]")
    return re.compile(rf"\{{\{{\s*(?:template:)?(?:{names})\s*(?:\||\}}\}})", re.IGNORECASE)


DISAMBIGUATION = _disambiguation(**_PAGES["disambiguation_templates"])


@dataclass(slots=True)
class Page:
    """A page of a dump. With `oversized`, its text had more than 16 MiB and was not kept. model: what its text is, such as wikitext or json."""

    id: str = ""
    title: str = ""
    namespace: int = 0
    redirect: bool = False
    text: str = ""
    oversized: bool = False
    model: str = "wikitext"


@dataclass
class Site:
    """What a dump says of its wiki: the names of the namespaces, such as {"Kategorie": 14}, and the language."""

    namespaces: dict[str, int] = field(default_factory=dict)
    language: str = ""


@dataclass
class _Reader:
    """The handlers of the XML parser, and what they have read so far."""

    path: Path
    site: Site
    pages: deque[Page] = field(default_factory=deque)
    trail: list[str] = field(default_factory=list)
    pieces: list[str] | None = None
    size: int = 0
    values: dict[str, str] = field(default_factory=dict)
    redirect: bool = False
    oversized: bool = False
    key: int | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.trail.append(name)
        if len(self.trail) > MAX_DEPTH:
            raise InputError(
                f"{self.path}: elements are nested more than {MAX_DEPTH} deep, which no MediaWiki dump has. Name a pages-articles dump."
            )
        if len(self.trail) == 1 and name != "mediawiki":
            raise InputError(
                f"{self.path}: the root element is <{name}>, but a MediaWiki dump has the root "
                f"element <mediawiki>. Name a pages-articles dump."
            )
        if len(self.trail) == 1:
            self.site.language = attributes.get("xml:lang", "")[:MAX_FIELD_CHARS]
        trail = tuple(self.trail)
        if name == "page":
            self.values, self.redirect, self.oversized = {}, False, False
        elif name == "redirect":
            self.redirect = True
        elif trail in FIELDS or trail == NAMESPACE:
            self.pieces, self.size = [], 0
            self.key = _integer(attributes.get("key", "")) if trail == NAMESPACE else None

    def text(self, data: str) -> None:
        if self.pieces is None:
            return
        self.size += len(data)
        if self.size <= (MAX_PAGE_BYTES if self.trail[-1] == "text" else MAX_FIELD_CHARS):
            self.pieces.append(data)

    def end(self, name: str) -> None:
        trail = tuple(self.trail)
        self.trail.pop()
        if trail == NAMESPACE and self.key is not None:
            self.site.namespaces["".join(self.pieces or ())] = self.key
        elif trail in FIELDS:
            self.values[FIELDS[trail]] = "".join(self.pieces or ())
            self.oversized = self.oversized or (name == "text" and self.size > MAX_PAGE_BYTES)
        elif name == "page":
            self.pages.append(self.page())
        self.pieces = None

    def page(self) -> Page:
        values = self.values
        text = "" if self.oversized else values.get("text", "")
        title = values.get("title", "")
        if "namespace" in values:
            namespace = _integer(values["namespace"])
        else:  # before version 0.6 of the format the title alone says it
            before, colon, _ = title.partition(":")
            namespace = self.site.namespaces.get(before, 0) if colon else 0
        model = values.get("model", "wikitext")
        return Page(values.get("id", ""), title, namespace, self.redirect, text, self.oversized, model)

    def refuse_doctype(self, *_: object) -> None:
        raise InputError(
            f"{self.path} declares a document type. MediaWiki dumps do not, but XML bombs do, so it was not read. Check where the file is from."
        )


def _integer(text: str) -> int:
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else 0


def pages(path: Path, site: Site | None = None, part: DumpPart = WHOLE) -> Iterator[Page]:
    """Yield every page of a dump in file order, with redirects and talk pages. Of several revisions the last counts.

    Args:
        path: the dump.
        site: receives what the dump says of its wiki, before the first page.
        part: the part of the dump that is read.

    Raises:
        InputError: broken, cut or hostile XML. The message names file, line and byte.
    """
    reader = _Reader(path, site or Site())
    parser = _parser(reader)
    fed = place = 0
    try:
        for piece in part.pieces(path):
            for begin in range(0, len(piece), FEED_BYTES):
                feed = piece[begin : begin + FEED_BYTES]
                parser.Parse(feed, False)
                fed += len(feed)
                place = max(place, parser.CurrentByteIndex)  # expat 2.6 says -1 while it waits for the end of a tag
                if fed - place > MAX_TAG_BYTES:
                    raise InputError(
                        f"{path}: a tag of more than {MAX_TAG_BYTES // 2**20} MiB at byte "
                        f"{place + part.skipped}. This is not a MediaWiki dump."
                    )
                while reader.pages:
                    yield reader.pages.popleft()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        line, why = error.lineno + part.skipped_lines(path), _reason(error, fed + part.skipped)
        raise InputError(f"{path}:{line}: broken XML ({why}). The dump is cut or damaged: get it again.") from None
    yield from reader.pages


def stated_language(path: Path) -> str:
    """Return the language that the root element of a dump names (xml:lang), such as ko. Empty for another file, or without one."""
    root = ROOT.match(head(path, FEED_BYTES).decode("utf-8", "replace").lstrip("\ufeff"))
    language = LANGUAGE.search(root[1]) if root else None
    return language[1].lower() if language else ""


def _parser(reader: _Reader) -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.buffer_size = 2**18
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse_doctype
    return parser


def _reason(error: expat.ExpatError, fed: int) -> str:
    what = expat.ErrorString(error.code)
    return (
        f"{what} at the end of the file, byte {fed}" if "no element found" in what else f"{what}, column {error.offset}"
    )


def skip_title(title: str, keep_lists: bool) -> str | None:
    """Return why pages with this title are dropped: "disambiguation", "list", or None.

    ORQA's preprocessing drops titles that start with "List of", "Index of" or "Outline of", or contain
    "(disambiguation)". So are their kin in nine other languages.
    """
    if IN_TITLES.search(title):
        return "disambiguation"
    is_list = title.startswith(LISTS) or title.endswith(ENDINGS_OF_LISTS)
    return "list" if is_list and not keep_lists else None


def skip_page(page: Page) -> str | None:
    """Return why a page is not an article, whatever its title: "redirect", "namespace", "model" for what is no wikitext, "empty", "disambiguation", or None."""
    if page.redirect or REDIRECT.match(page.text):
        return "redirect"
    if page.namespace != 0:
        return "namespace"
    if page.model != "wikitext":
        return "model"
    if not page.oversized and not page.text.strip():
        return "empty"
    marked = DISAMBIGUATION.search(page.text) and DISAMBIGUATION.search(drop_hidden(page.text))
    return "disambiguation" if marked else None
