"""The words of charts and diagrams, which stand in parts of their own."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from realmctl.extras.documents.containers.archive import Archive, attribute, short

PARTS = {"c:chart": "r:id", "cx:chart": "r:id", "dgm:relIds": "r:dm"}
"""Elements that show another part, and the attribute that names its relation."""
NAMES = frozenset({"c:tx", "c:cat", "cx:tx", "cx:strDim"})
CACHED = frozenset({"c:v", "cx:v", "cx:pt"})


def texts_of(graphic: Element, archive: Archive, related: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the texts of the chart or diagram that an element shows, one after the other."""
    name = related.get(attribute(graphic, PARTS[short(graphic.tag)]) or "", ("", ""))[1]
    root = archive.tree(name)
    if root is not None:
        yield from _texts(root)


def _texts(element: Element) -> Iterator[str]:
    """The text of each paragraph, and the names of series and categories. What is counted is no text."""
    kind = short(element.tag)
    if kind == "a:p":
        yield text_of(element)
    elif kind in NAMES and (values := [each.text or "" for each in element.iter() if short(each.tag) in CACHED]):
        formats = {each.text for each in element.iter() if short(each.tag) == "c:formatCode"}
        if formats <= {"General"}:  # others are dates by their number
            yield " | ".join(values)
    else:
        for each in element:
            yield from _texts(each)


def text_of(paragraph: Element) -> str:
    """The text of a paragraph of DrawingML. A line break is a line end, and a tab a tab."""
    parts = list[str]()
    for each in paragraph.iter():
        kind = short(each.tag)
        if kind in ("a:t", "m:t"):
            parts.append(each.text or "")
        elif kind in ("a:br", "a:tab"):
            parts.append("\n" if kind == "a:br" else "\t")
    return "".join(parts)
