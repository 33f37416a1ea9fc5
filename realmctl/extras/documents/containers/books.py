"""EPUB books as one page of HTML: all chapters in the order of reading, also those that are not linear, such as notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import escape, unescape
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from realmctl.corpus.wiki.markup import HIDING
from realmctl.extras.documents.containers.archive import Archive, beside, child, short, words

NAMED_CHARACTER = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z][A-Za-z0-9]{1,31};")
DOCTYPE = re.compile(rb"<!DOCTYPE[^>\[]*>")
PAGES = frozenset({"application/xhtml+xml", "text/html"})
UNSEEN = frozenset(["head", "script", "style", "template", "nav", "annotation", "annotation-xml", "rp"])
BREAKING = frozenset(
    [
        "p",
        "div",
        "li",
        "td",
        "th",
        "tr",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "br",
        "dt",
        "dd",
        "pre",
        "blockquote",
        "section",
        "article",
        "aside",
        "figcaption",
        "caption",
        "hr",
        "rt",
        "table",
        "ul",
        "ol",
    ]
)


def html_of(archive: Archive) -> tuple[str, Counter[str]]:
    """The book as HTML, and how often each word stands in its chapters."""
    container = archive.tree("META-INF/container.xml")
    package = (
        next((each.get("full-path", "") for each in container.iter() if each.get("full-path")), "")
        if container is not None
        else ""
    )
    root = archive.tree(package)
    if root is None:
        raise ValueError("it has no list of its chapters")
    metadata, manifest, spine = (child(root, f"opf:{name}") for name in ("metadata", "manifest", "spine"))
    title = child(metadata, "dc:title") if metadata is not None else None
    chapters = {
        each.get("id", ""): beside(package, each.get("href", ""))
        for each in (manifest if manifest is not None else ())
        if each.get("media-type") in PAGES and "nav" not in each.get("properties", "").split()
    }
    named = [chapters.get(each.get("idref", ""), "") for each in (spine if spine is not None else ())]
    made, shown = [f"<title>{escape(title.text or '') if title is not None else ''}</title>"], list[str]()
    for name in dict.fromkeys(named):
        if name in archive.names:
            body = _body(archive.read(name))
            if isinstance(body, str):
                made.append(body)
            elif body is not None:
                shown.append("".join(_texts(body)))
                made.append(ET.tostring(_plain(body), "unicode", method="html"))
    return "\n".join(made), words(shown)


def _body(data: bytes) -> Element | str | None:
    """The body of a chapter; the chapter as it stands where it is no XML."""
    data = NAMED_CHARACTER.sub(
        lambda name: unescape(name[0].decode()).encode("ascii", "xmlcharrefreplace"), DOCTYPE.sub(b"", data, count=1)
    )
    try:
        return child(ET.fromstring(data), "html:body")
    except ET.ParseError:
        return data.decode(errors="replace")


def _plain(element: Element) -> Element:
    """The element with the names of HTML."""
    for each in element.iter():
        each.tag = short(each.tag).rpartition(":")[2]
    element.tag = "div"
    return element


def _texts(element: Element) -> Iterator[str]:
    """Yield the texts of an element, with blanks where a reader sees the end of a word."""
    name = short(element.tag).rpartition(":")[2]
    is_break = name in BREAKING
    if is_break:
        yield " "
    seen = name not in UNSEEN and "hidden" not in element.attrib and not HIDING.search(element.get("style") or "")
    if seen and not _is_contents(element):
        yield element.text or ""
        for each in element:
            yield from _texts(each)
            yield each.tail or ""
    if is_break:
        yield " "


def _is_contents(element: Element) -> bool:
    """Whether an element is the table of contents of DocBook's chapters, which readers of pages leave out: mostly links."""
    if "toc" not in (element.get("class") or "").split():
        return False
    links = (each for each in element.iter() if short(each.tag).rpartition(":")[2] == "a")
    in_links = sum(len("".join("".join(each.itertext()).split())) for each in links)
    return 2 * in_links > len("".join("".join(element.itertext()).split()))
