"""Read pages of HTML and Markdown as text: a paragraph, a heading, a list item, a row of a table or a line of code is a line.

Markdown becomes HTML by markdown-it-py (CommonMark with tables), and HTML is parsed by selectolax, both of the extra `html`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.errors import require_package
from realmctl.inputs import streams

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
    ]
) | frozenset(HEADINGS)
"""Elements that begin and end a line."""
NO_TEXT = frozenset(
    [
        "button",
        "head",
        "iframe",
        "nav",
        "noscript",
        "object",
        "script",
        "select",
        "style",
        "svg",
        "template",
        "textarea",
    ]
)
BOILERPLATE = frozenset({"aside", "footer", "header"})
"""Left out of a page that does not say which part is its content (`main`, or a single `article`)."""
SIGNS = frozenset({"headerlink", "footnote-ref", "footnote-back"})
"""Classes of links that are signs: beside a heading of Sphinx and MkDocs, and at a footnote of pandoc."""
ITEM_MARK = re.compile(r"(?:-|\d+\.)\s+")
FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:[ \t]*(['\"]?)(.+?)\1[ \t]*\r?$", re.MULTILINE)


def read_html(file: CorpusFile) -> Iterator[Found]:
    """Yield a page of HTML as one document, titled by `<title>`, or by its first heading, or by its file."""
    require_package("selectolax", "html", f"{file.path} is HTML, and reading it")
    yield document_of_html(file, streams.whole_text(file.path, MAX_TEXT_FILE), "")


def read_markdown(file: CorpusFile) -> Iterator[Found]:
    """Yield a Markdown file as one document, titled by its front matter, or by its first heading, or by its file."""
    require_package("selectolax", "html", f"{file.path} is Markdown, and reading it")
    require_package("markdown_it", "html", f"{file.path} is Markdown, and reading it")
    from markdown_it import MarkdownIt

    text, title = streams.whole_text(file.path, MAX_TEXT_FILE), ""
    if front := FRONT_MATTER.match(text):
        text, named = text[front.end() :], FRONT_TITLE.search(front[1])
        title = named[2] if named else ""
    yield document_of_html(file, MarkdownIt("commonmark").enable("table").render(text), title)


def document_of_html(file: CorpusFile, html: str, title: str) -> Found:
    """A page as a document, titled by `title`, or by `<title>`, or by its first heading, or by its file; `Dropped` if it is empty."""
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(html)
    titles = [title, *(_one_line(each.text()) for each in page.css("head > title")[:1])]
    content, is_marked = page.body, False
    articles = page.css("article")
    for each in (*page.css("main, [role=main]"), *(articles if len(articles) == 1 else ())):
        if each.text().strip():
            content, is_marked = each, True
            break
    lines = _lines(content, is_marked) if content is not None else []
    first_heading = next((line for line, is_heading in lines if is_heading), "")
    title = next(filter(None, (*titles, first_heading)), "")
    if lines and lines[0][0] == title:
        del lines[0]
    if not lines and not title:
        return Dropped(file.name, "empty")
    ends = [end - 1 for end in accumulate(len(line) + 1 for line, _ in lines)]
    return Document(
        file.name,
        title or file.stem.replace("_", " "),
        "\n".join(line for line, _ in lines),
        has_lines=True,
        headings=frozenset(end for end, (_, is_heading) in zip(ends, lines, strict=True) if is_heading),
        where=str(file.path),
    )


def _lines(content: object, is_marked: bool) -> list[tuple[str, bool]]:
    """Return the lines of an element, and whether each is a heading. Nodes are kept on a stack, since a page may be nested deeply."""
    lines, line = list[tuple[str, bool]](), list[str]()
    numbers: list[int | None] = []  # of the lists that are open: the next number, or None in a list without numbers
    in_code = in_heading = 0

    def end_line() -> None:
        text = "".join(line)
        line.clear()
        for each in text.split("\n") if in_code else [text]:
            if found := each.rstrip() if in_code else _one_line(each):
                lines.append((found, in_heading > 0))

    stack: list[tuple[Any, bool]] = [(content, False)]
    while stack:
        node, is_end = stack.pop()
        tag = node.tag
        if tag == "-text":
            line.append(node.text(deep=False))
            continue
        if is_end:
            if tag in BLOCKS:
                end_line()
            in_code -= tag == "pre"
            in_heading -= tag in HEADINGS
            if tag in ("ul", "ol"):
                numbers.pop()
            continue
        if tag is None or not (tag[0].isalpha() and _is_shown(node, tag, is_marked)):
            continue
        if tag in BLOCKS and (tag in ("li", "ol", "ul") or not ITEM_MARK.fullmatch("".join(line))):
            end_line()
        in_code += tag == "pre"
        in_heading += tag in HEADINGS
        if tag in ("ul", "ol"):
            numbers.append(1 if tag == "ol" else None)
        elif tag == "li":
            number = numbers[-1] if numbers else None
            line.append("- " if number is None else f"{number}. ")
            if number is not None:
                numbers[-1] = number + 1
        elif tag in ("td", "th") and "".join(line).strip():
            line.append(" | ")
        stack.append((node, True))
        stack += ((child, False) for child in reversed(list(node.iter(include_text=True))))
    end_line()
    return lines


def _is_shown(node: Any, tag: str, is_marked: bool) -> bool:
    if tag in NO_TEXT or "hidden" in node.attributes or node.attributes.get("aria-hidden") == "true":
        return False
    if not SIGNS.isdisjoint((node.attributes.get("class") or "").split()):
        return False
    return is_marked or tag not in BOILERPLATE or (tag == "header" and node.css_first("h1") is not None)


def _one_line(text: str) -> str:
    return " ".join(text.split())
