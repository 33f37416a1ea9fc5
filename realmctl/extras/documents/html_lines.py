"""The program that reads the lines of many pages of HTML and Markdown, one after the other, in a process of its own (`apart.ManyParses`)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from realmctl.corpus.wiki.markup import HIDING
from realmctl.extras.documents import markdown_kinds, sphinx, wiki_pages
from realmctl.extras.documents.leads import LedLine, led_lines
from realmctl.extras.documents.many_parses import answer

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "caption",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hr",
        "li",
        "listing",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
        "xmp",
    ]
) | frozenset(HEADINGS)
"""Elements that begin and end a line."""
CELLS = ("td", "th")
POWER = re.compile(r"[+\-\u2212]?\d{1,9}")
NO_TEXT = frozenset(
    [
        "audio",
        "button",
        "annotation",
        "canvas",
        "head",
        "iframe",
        "meter",
        "nav",
        "noscript",
        "object",
        "progress",
        "script",
        "select",
        "style",
        "svg",
        "template",
        "textarea",
        "video",
    ]
)
BOILERPLATE = frozenset({"aside", "footer", "header"})
"""Left out of a page that does not say which part is its content (`main`, or a single `article`)."""
NO_CONTENT = frozenset({"navigation", "search"})
BOILERPLATE_ROLES = frozenset({"banner", "complementary", "contentinfo"})
"""Roles of WAI-ARIA that say what `nav`, `aside`, `footer` and `header` say."""
NAVIGATION = frozenset(
    [
        "breadcrumb",
        "breadcrumbs",
        "menu",
        "nav",
        "navbar",
        "navfooter",
        "navheader",
        "navi",
        "navigation",
        "navlist",
        "pagination",
        "sidebar",
        "toc",
    ]
)
"""Words of classes and ids of navigation, in pages that mark it by neither `nav` nor a role: those of Javadoc, Doxygen, DocBook, Texinfo and Bootstrap."""
ALWAYS_NAVIGATION = frozenset({"navfooter", "navheader"})
"""Those of DocBook, whose titles of chapters outweigh the links."""
WORD_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
JUDGED_DEPTH = 4
"""How many elements named like navigation are judged where each stands in the one before. So no text is counted more often."""
SIGNS = frozenset(
    [
        "boring",
        "fn-backref",
        "footnote-back",
        "footnote-backref",
        "footnote-ref",
        "footnote-reference",
        "headerlink",
        "hideme",
        "lineno",
        "linenos",
        "mw-editsection",
        "rightside",
        "viewcode-back",
        "viewcode-link",
    ]
)
"""Classes of signs: beside a heading of Sphinx, MkDocs and MediaWiki, at a footnote of pandoc, Sphinx and mdBook, numbers of lines of code, lines
that mdBook hides until they are asked for, and what leads to the source of an item of Sphinx and rustdoc or unfolds it."""
FOOTNOTE_ROLES = frozenset({"doc-backlink", "doc-noteref"})
SIGNS_OF_LINKS = frozenset(
    {"#", "\u00a7", "\u00b6", "\u200b", "\u21a9", "\u21a9\ufe0e", "\u21a9\ufe0f", "\u25c6", "\U0001f517"}
)
"""Texts of links to a heading itself, or back from a footnote."""
MAX_HTML_DEPTH = 2**14
"""How deep elements may be nested; the parser's time grows with the square of it. A page of more is set aside."""
NESTING = re.compile(
    r"<(/?)(?!(?:p|li|d[dt]|t[drh]|tbody|thead|tfoot|option|br|hr|img|input|link|meta|wbr|col|area|source)\b)[a-z]",
    re.IGNORECASE,
)
"""The begin or end of an element that nests: with an end tag that may not be left out."""
NEAR_SIBLINGS = 8
OF_LINES = "table, pre, " + ", ".join(HEADINGS)
ITEMS_OF_A_LINE, CHARACTERS_OF_A_LINE = 10, 1000
"""What only a cell of a table that lays out a page holds: such elements, more items of lists, or more text."""
ASKED = frozenset({*HEADINGS, "dt", "summary"})
"""Elements whose button is their text, as in an accordion."""
ITEM_MARK = re.compile(r"(?:-|\d+\.)\s+")
TAKES_ALL = re.compile(
    rf"<(/?)({'|'.join(sorted(NO_TEXT | BOILERPLATE | {'article', 'main', 'noembed', 'noframes', 'plaintext', 'title', 'xmp'}))})(?=[\s/>])",
    re.IGNORECASE,
)
"""Tags that take what follows them, or what stands before, out of the text."""


def _without_lonely_tags(html: str) -> str:
    """Markdown's HTML, in which a name such as <object> that is no element, since it does not begin and end, is text."""
    counts = Counter((name.lower(), end) for end, name in TAKES_ALL.findall(html))
    return TAKES_ALL.sub(
        lambda tag: tag[0] if counts[tag[2].lower(), ""] == counts[tag[2].lower(), "/"] else f"&lt;{tag[0][1:]}", html
    )


MOST_METAS = 200
"""Elements `meta` of a page that are looked at."""
LONGEST_META = 1_000
"""Characters of what one of them says; the rest is cut."""


def page_of(asked: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Return the titles that a page has (`titles`), what it says of itself (`fields`), and its lines (`lines`), each with the number of the first line behind what it leads, 0 if it leads
    nothing, and with whether it is a heading; or why the page is set aside (`aside`).

    asked: `kind`, as of `pages.document_of`. data: Its text.
    """
    from selectolax.lexbor import LexborHTMLParser

    text, is_marked = data.decode(), asked["kind"] != "html"
    if asked["kind"] == "markdown":
        from markdown_it import MarkdownIt

        text = _without_lonely_tags(
            MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown_kinds.as_commonmark(text))
        )
    if _depth(text) > MAX_HTML_DEPTH:
        return {"aside": f"its elements are nested more than {MAX_HTML_DEPTH:,} deep"}
    page = LexborHTMLParser(sphinx.as_shown(text) if asked["kind"] == "rst" else text)
    if asked["kind"] == "wiki":
        wiki_pages.reduce(page)
    content = page.body
    if not is_marked and (marked := _content(page)) is not None:
        content, is_marked = marked, True
    return {
        "fields": {} if asked["kind"] in ("markdown", "rst", "man") else _fields(page),
        "titles": [_one_line(each.text()) for each in page.css("head > title")[:1]],
        "lines": _lines(content, is_marked, asked["kind"]) if content is not None else [],
    }


METAS = {
    "author": "author",
    "article:author": "author",
    "date": "date",
    "dc.date": "date",
    "dcterms.date": "date",
    "article:published_time": "date",
    "article:modified_time": "modified",
    "keywords": "keywords",
    "og:site_name": "site",
}
"""{name or property of an element `meta`: field}. The first of a field counts."""


def _fields(page: Any) -> dict[str, Any]:
    """What a page says of itself: its language, its address, its author, its dates and its keywords."""
    found = dict[str, Any]()
    if page.root is not None and (language := page.root.attributes.get("lang") or page.root.attributes.get("xml:lang")):
        found["language"] = language[:LONGEST_META]
    for link in page.css("head > link[rel=canonical]")[:1]:
        found["url"] = (link.attributes.get("href") or "")[:LONGEST_META]
    for meta in page.css("head > meta")[:MOST_METAS]:
        name = meta.attributes.get("name") or meta.attributes.get("property") or ""
        if field_name := METAS.get(name.lower()):
            content = (meta.attributes.get("content") or "")[:LONGEST_META]
            if field_name == "author" and "author" in found:
                found["author"] = [
                    *([found["author"]] if isinstance(found["author"], str) else found["author"]),
                    content,
                ]
            else:
                found.setdefault(field_name, content)
    if keywords := found.get("keywords"):
        found["keywords"] = [each.strip() for each in keywords.split(",") if each.strip()]
    return {name: value for name, value in found.items() if value}


def _depth(html: str) -> int:
    """How many elements are open at once, at most, if none is closed by another one."""
    return max(accumulate((-1 if tag[1] else 1 for tag in NESTING.finditer(html)), initial=0))


def _content(page: Any) -> Any:
    """The part of a page that it says is its content: an article that is alone in `main`, or `main`, or an article that is alone."""
    for main in page.css("main, [role=main]"):
        if main.text().strip():
            within = main.css("article")
            return within[0] if len(within) == 1 and within[0].text().strip() else main
    articles = page.css("article")
    return articles[0] if len(articles) == 1 and articles[0].text().strip() else None


CHILDREN = {"blockquote": (), "details": ("summary",), "div": ("p",), "dl": ("dt", "dd"), "table": ("caption", "tr")}
"""Elements of which some lines lead others, and the elements in them that say which: terms lead definitions, a caption and names of columns lead rows, and
a summary what it folds up. pandoc makes a `div` of an object of Sphinx, and a `blockquote` of a definition in a man page whose term is a paragraph before."""
BOUNDS = frozenset({"article", "aside", "blockquote", "dd", "details", "figure", "li", "section", "td"})
ADMONITIONS = frozenset({"admonition", "caution", "danger", "example", "hint", "important", "note", "tip", "warning"})
"""Elements, and words of classes of a `div`, whose headings lead no further than their end, and end no section that they stand in."""
LEVELS = 10
"""Levels of headings in an element are so many below those around it."""
LEADING = frozenset({"caption", "dt", "summary"})
MOST_TERMS = 4
"""Terms that share a definition. An index has many more one below the other, and a few that lead others."""
LONGEST_TERM = 200
"""Longest paragraph that is a term, in characters."""


@dataclass
class _Part:
    """One of these elements while it is read: the numbers of its lines that lead others, and that of the line with which the last child began.

    is_told: whether a definition has followed the terms, or a row the names.
    """

    tag: str
    leading: list[int] = field(default_factory=list)
    begin: int = 0
    is_told: bool = False


class _Leads:
    """Finds which lines of a page lead others, while they are read.

    Args:
        lines: the lines so far, with levels as headings.
        kind: as of `page_of`.

    Attributes:
        led: {number of a line: that of the first line behind what it leads}.
    """

    def __init__(self, lines: list[tuple[str, float]], kind: str) -> None:
        self._lines, self._kind = lines, kind
        self.led = dict[int, int]()
        self._open, self._paragraph = [_Part("")], 0
        self._bounds, self._headings = (
            list[int](),
            list[int](),
        )  # the lines with which open bounds begin; headings that lead on

    def begin(self, node: Any, tag: str) -> None:
        """Note that an element begins."""
        part, count = self._open[-1], len(self._lines)
        if tag == "p":
            self._paragraph = count
        if _is_bound(node, tag):
            self._bounds.append(count)
        if self._is_part(node, tag):
            self._open.append(_Part(tag, [*range(self._paragraph, count)] if tag == "blockquote" else []))
        elif tag in CHILDREN.get(part.tag, ()):
            part.begin = count
            if tag == "dt" and part.is_told:
                part.leading, part.is_told = [], False

    def end(self, node: Any, tag: str) -> None:
        """Note that it ends."""
        part, count = self._open[-1], len(self._lines)
        if _is_bound(node, tag):
            begin = self._bounds.pop()
            while self._headings and self._headings[-1] >= begin:
                self.led[self._headings.pop()] = count
        if self._is_part(node, tag):
            self._open.pop()
            if tag != "dl":
                self._lead(part)
        elif tag in CHILDREN.get(part.tag, ()):
            is_name = (tag == "tr" and _names_columns(node)) or (tag == "p" and _is_code(node))
            if tag in LEADING or (is_name and not part.is_told):
                part.leading += range(part.begin, count)
            else:
                part.is_told = True
                if tag == "dd":
                    self._lead(part)
        elif (
            tag == "p"
            and self._kind == "markdown"
            and 0 < self._paragraph < count
            and self._lines[self._paragraph][0].startswith(": ")
        ):
            self.led[self._paragraph - 1] = count  # a definition, as many dialects of Markdown write it

    def level(self, heading: int) -> int:
        """The level of the next line, from 1; 0 if it is no heading. heading: the level that its element says."""
        if heading:
            self._headings.append(len(self._lines))
        return heading and LEVELS * len(self._bounds) + heading

    def _lead(self, part: _Part) -> None:
        self.led.update(dict.fromkeys(part.leading[-MOST_TERMS:], len(self._lines)))

    def _is_part(self, node: Any, tag: str) -> bool:
        if tag == "div":
            return self._kind == "rst" and node.attributes.get("class") == "object"
        if tag != "blockquote":
            return tag in CHILDREN
        before = node.prev
        while before is not None and before.tag == "-text" and not before.text().strip():
            before = before.prev
        return self._kind == "man" and before is not None and before.tag == "p" and len(before.text()) <= LONGEST_TERM


def _is_bound(node: Any, tag: str) -> bool:
    if tag != "div":
        return tag in BOUNDS
    names = node.attributes.get("class")
    return bool(names) and not ADMONITIONS.isdisjoint(names.split())


def _names_columns(row: Any) -> bool:
    cells = [cell for cell in row.iter() if cell.tag in CELLS]
    return len(cells) > 1 and all(cell.tag == "th" for cell in cells)


def _is_code(paragraph: Any) -> bool:
    shown = [child for child in paragraph.iter(include_text=True) if child.tag != "-text" or child.text().strip()]
    return bool(shown) and all(child.tag == "code" for child in shown)


def _lines(content: object, is_marked: bool, kind: str) -> list[LedLine]:
    """Return the lines of an element as `page_of` does. Nodes are kept on a stack, since a page may be nested deeply."""
    lines, line = list[tuple[str, float]](), list[str]()  # each line with its level as a heading, from 1, or 0
    leads = _Leads(lines, kind)
    numbers: list[int | None] = []  # of the lists that are open: the next number, or None in a list without numbers
    cells: list[int] = []  # of the rows that are open: how many cells they have
    in_code = in_heading = in_cell = in_named = 0

    def end_line() -> None:
        if in_cell:
            line.append(" ")
            return
        text = "".join(line)
        line.clear()
        if not text.strip(" |\n\t"):
            text = ""
        for each in text.split("\n") if in_code else [text]:
            if found := each.rstrip() if in_code else _one_line(each):
                lines.append((found, leads.level(in_heading)))

    stack: list[tuple[Any, bool]] = [(content, False)]
    while stack:
        node, is_end = stack.pop()
        tag = node.tag
        if tag == "-text":
            line.append(node.text(deep=False))
            continue
        if is_end:
            in_cell -= tag in CELLS and _is_part_of_line(node)
            if tag in BLOCKS:
                end_line()
            in_code -= tag == "pre"
            if tag in HEADINGS:
                in_heading = 0
            elif tag in ("ul", "ol"):
                numbers.pop()
            elif tag == "tr":
                cells.pop()
            elif tag == "rt" and _has_no_brackets(node):
                line.append(")")
            leads.end(node, tag)
            in_named -= _is_named_navigation(node)
            continue
        if tag is None or not (tag[0].isalpha() and _is_shown(node, tag, is_marked)):
            continue
        is_named = _is_named_navigation(node)
        if is_named and in_named < JUDGED_DEPTH and _is_navigation(node):
            continue
        in_named += is_named
        if tag in BLOCKS and (tag in ("li", "ol", "ul") or not ITEM_MARK.fullmatch("".join(line))):
            end_line()
        in_code += tag == "pre"
        in_heading = int(tag[1]) if tag in HEADINGS else in_heading
        leads.begin(node, tag)
        if tag in ("ul", "ol"):
            numbers.append(_number(node, "start", 1) if tag == "ol" else None)
        elif tag == "li":
            number = numbers[-1] if numbers else None
            if number is not None:
                number = _number(node, "value", number)
                numbers[-1] = number + 1
            line.append("" if in_cell else "- " if number is None else f"{number}. ")
        elif tag == "tr":
            cells.append(0)
        elif tag in CELLS:
            is_part = _is_part_of_line(node)
            if (is_part and cells and cells[-1]) or "".join(line).strip():
                line.append(" | ")
            if cells:
                cells[-1] = cells[-1] + 1 if is_part else 0
            in_cell += is_part
        elif tag == "sup" and line and line[-1][-1:].isdigit() and POWER.fullmatch(node.text().strip()):
            line.append("^")
        elif tag == "rt" and _has_no_brackets(node):
            line.append("(")
        stack.append((node, True))
        stack += ((child, False) for child in reversed(list(node.iter(include_text=True))))
    end_line()
    return led_lines(lines, leads.led)


def _is_part_of_line(cell: Any) -> bool:
    """Whether a cell of a table is a part of its row's line, and does not lay out a part of the page."""
    if cell.css_first(OF_LINES) is not None:
        return False
    return len(cell.css("li")) <= ITEMS_OF_A_LINE and len(cell.text()) <= CHARACTERS_OF_A_LINE


def _has_no_brackets(reading: Any) -> bool:
    """Whether the reading of a ruby has words, and the page no brackets for them (`rp`)."""
    return bool(reading.text().strip()) and reading.parent.css_first("rp") is None


def _number(node: Any, name: str, default: int) -> int:
    """The whole number of an attribute; `default` where there is none, or one of more than nine digits."""
    found = re.fullmatch(r"\s*([+-]?\d{1,9})\s*", node.attributes.get(name) or "")
    return int(found[1]) if found else default


def _is_shown(node: Any, tag: str, is_marked: bool) -> bool:
    attributes = node.attributes
    role = (attributes.get("role") or "").lower()
    if tag in NO_TEXT and not (tag == "button" and _is_asked(node)):
        return False
    if tag == "dialog" and "open" not in attributes:
        return False
    is_hidden = "hidden" in attributes and attributes["hidden"] != "until-found" and role != "tabpanel"
    is_unread = (
        attributes.get("aria-hidden") == "true" and tag != "figcaption"
    )  # which pandoc hides where `alt` says the same
    if is_hidden or is_unread or HIDING.search(attributes.get("style") or ""):
        return False
    classes = (attributes.get("class") or "").split()
    if role in NO_CONTENT or role in FOOTNOTE_ROLES or not SIGNS.isdisjoint(classes):
        return False
    if tag == "sup" and "reference" in classes:  # MediaWiki's
        return False
    if tag == "a" and node.text().strip() in SIGNS_OF_LINKS:
        return False
    if tag == "footer" or role == "contentinfo":
        return node.parent is not None and node.parent.tag == "blockquote"
    return (
        is_marked
        or not (tag in BOILERPLATE or role in BOILERPLATE_ROLES)
        or (tag == "header" and node.css_first("h1") is not None)
    )


def _is_named_navigation(node: Any, named: frozenset[str] = NAVIGATION) -> bool:
    names = " ".join(filter(None, map(node.attributes.get, ("class", "id"))))
    if names == "header":  # Texinfo's; others have rows of this name
        return named is NAVIGATION and bool(node.tag == "div")
    return bool(names) and not named.isdisjoint(word.lower() for word in WORD_OF_NAME.findall(names))


def _is_navigation(node: Any) -> bool:
    """Whether an element without a heading is navigation by its name alone, or holds links, and they hold more than half of its characters."""
    if node.tag == "a" or node.css_first(", ".join(HEADINGS)) is not None:
        return False
    if _is_named_navigation(node, ALWAYS_NAVIGATION):
        return True
    in_links = sum(len("".join(link.text().split())) for link in node.css("a[href]"))
    return 2 * in_links > len("".join(node.text().split()))


def _is_asked(button: Any) -> bool:
    """Whether a button is all the text of a heading or of a summary, at most three elements deep in it."""
    node = button
    for _ in range(3):
        if not _is_alone(node):
            return False
        node = node.parent
        if node is None or node.tag in ASKED:
            return node is not None
    return False


def _is_alone(node: Any) -> bool:
    """Whether no sibling of a node has text, of a few on each side. A node with more siblings is not alone."""
    for side in ("prev", "next"):
        sibling = getattr(node, side)
        for _ in range(NEAR_SIBLINGS):
            if sibling is None:
                break
            if sibling.tag in NO_TEXT or not sibling.text().strip():
                sibling = getattr(sibling, side)
            else:
                return False
        else:
            return False
    return True


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    answer(page_of)
