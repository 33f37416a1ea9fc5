"""Slides of PowerPoint as a page of HTML: the shapes of each slide in their order, the words of charts and diagrams, and the notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from xml.etree.ElementTree import Element

from realmctl.extras.documents.containers.archive import Archive, attribute, child, short, shown_alternative, words
from realmctl.extras.documents.containers.graphics import PARTS, text_of, texts_of

FEET = frozenset({"sldNum", "dt", "ftr", "hdr"})
"""Placeholders of what stands on every slide."""
TITLES = frozenset({"title", "ctrTitle"})
NOTES = "Notes"
NUMBER = re.compile(r"-?[0-9]{1,15}")
NO_TITLE = re.compile(
    r"(?:microsoft )?power ?point\b.*|powerpoint-.*|.*\.(?:pptx?|odp)|slide \d+|untitled.*", re.IGNORECASE
)
"""Titles that programs write."""


def html_of(archive: Archive) -> tuple[str, Counter[str]]:
    """The slides as HTML, and how often each word stands in what they show."""
    main = next((name for kind, name in archive.related("").values() if kind == "officeDocument"), "")
    presentation, related = archive.tree(main), archive.related(main)
    if presentation is None:
        raise ValueError("there is no presentation in it")
    properties = next(
        (archive.tree(name) for kind, name in archive.related("").values() if kind == "core-properties"), None
    )
    named = child(properties, "dc:title") if properties is not None else None
    title = (named.text or "").strip() if named is not None else ""
    lines, shown = [f"<title>{'' if NO_TITLE.fullmatch(title) else escape(title)}</title>"], list[str]()
    entries = child(presentation, "p:sldIdLst")
    for entry in entries if entries is not None else ():
        name = related.get(attribute(entry, "r:id") or "", ("", ""))[1]
        slide = archive.tree(name)
        if slide is None or slide.get("show") in ("0", "false"):
            continue
        _without_what_is_off(slide, child(presentation, "p:sldSz"))
        page = _Page(archive, name)
        lines += page.lines(slide)
        shown += page.shown(slide)
        for kind, notes_name in page.related.values():
            notes = archive.tree(notes_name) if kind == "notesSlide" else None
            if notes is not None:
                lines += _Page(archive, notes_name).notes(notes)
    return "\n".join(lines), words(shown)


class _Page:
    """A slide, or the page of its notes."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.archive, self.related = archive, archive.related(name)

    def lines(self, slide: Element) -> Iterator[str]:
        """Yield the lines of HTML of all shapes, the title first."""
        shapes = list(_shapes(slide))
        for shape in sorted(shapes, key=lambda shape: _placeholder(shape)[1] not in TITLES):
            yield from self._lines_of(shape)

    def notes(self, page: Element) -> Iterator[str]:
        """Yield the lines of the notes, which begin with the word that marks them."""
        told = NOTES + ": "
        for shape in _shapes(page):
            if _placeholder(shape)[1] == "body":
                for text in filter(str.strip, _paragraphs(shape)):
                    yield f"<p>{told}{_marked(text)}</p>"
                    told = ""

    def shown(self, slide: Element) -> Iterator[str]:
        """Yield the text of each paragraph that is no foot and not hidden, wherever it stands."""
        _without_unseen(slide)
        for each in slide.iter():
            if short(each.tag) == "a:p":
                yield text_of(each)

    def _lines_of(self, shape: Element) -> Iterator[str]:
        kind = short(shape.tag)
        if kind == "a:tbl":
            rows = (
                [" ".join(_paragraphs(cell)) for cell in row if short(cell.tag) == "a:tc" and not _is_merged(cell)]
                for row in shape
                if short(row.tag) == "a:tr"
            )
            yield "<table>"
            for row in rows:
                yield f"<tr>{''.join(f'<td>{_marked(cell)}</td>' for cell in row)}</tr>"
            yield "</table>"
        elif kind in PARTS:
            for text in texts_of(shape, self.archive, self.related):
                yield f"<p>{_marked(text)}</p>"
        else:
            is_placeholder, role = _placeholder(shape)
            if role in TITLES:
                yield f"<h2>{_marked(' '.join(_paragraphs(shape)))}</h2>"
                return
            for paragraph in _of_kind(shape, "a:p"):
                text = text_of(paragraph)
                if text.strip():
                    yield _item(text, paragraph, is_placeholder and role in ("", "body", "obj"))


def _shapes(element: Element) -> Iterator[Element]:
    """Yield shapes, tables, charts and diagrams in their order, out of all groups. What is hidden and what stands on every slide is left out."""
    for each in element:
        kind = short(each.tag)
        if kind == "mc:AlternateContent":
            for choice in shown_alternative(each):
                yield from _shapes(_holding(choice))
        elif _is_unseen(each):
            continue
        elif kind in PARTS or kind == "a:tbl" or any(short(inner.tag) == "a:p" for inner in _bodies(each)):
            yield each
        else:
            yield from _shapes(each)


def _holding(element: Element) -> Element:
    holder = Element("holder")
    holder.append(element)
    return holder


def _bodies(shape: Element) -> Iterator[Element]:
    """Yield what stands in the text bodies that are children of a shape."""
    for each in shape:
        if short(each.tag).endswith(":txBody"):
            yield from each


def _without_what_is_off(slide: Element, size: Element | None) -> None:
    """Take out the shapes that lie wholly beside the slide. What has no place of its own stands where the layout says."""
    width, height = _numbers(size, "cx", "cy")
    for tree in [each for each in slide.iter() if short(each.tag) == "p:spTree"]:
        for shape in list(tree):
            place = next((each for each in shape.iter() if short(each.tag) in ("a:xfrm", "p:xfrm")), shape)
            offset, extent = child(place, "a:off"), child(place, "a:ext")
            if not (width and height) or offset is None or extent is None:
                continue
            (left, top), (wide, high) = _numbers(offset, "x", "y"), _numbers(extent, "cx", "cy")
            if left + wide <= 0 or top + high <= 0 or left >= width or top >= height:
                tree.remove(shape)


def _numbers(element: Element | None, *names: str) -> list[int]:
    """Whole numbers of an element's attributes; 0 for what is none."""
    written = [element.get(name, "") if element is not None else "" for name in names]
    return [int(each) if NUMBER.fullmatch(each) else 0 for each in written]


def _is_unseen(shape: Element) -> bool:
    for each in shape:
        properties = child(each, "p:cNvPr") if short(each.tag).startswith("p:nv") else None
        if properties is not None:
            return properties.get("hidden") in ("1", "true") or _placeholder(shape)[1] in FEET
    return False


def _placeholder(shape: Element) -> tuple[bool, str]:
    """Whether a shape fills a place of its layout, and the kind of the place."""
    for each in shape:
        if short(each.tag).startswith("p:nv") and (found := child(each, "p:nvPr", "p:ph")) is not None:
            return True, found.get("type", "")
    return False, ""


def _is_merged(cell: Element) -> bool:
    return any(cell.get(name) in ("1", "true") for name in ("hMerge", "vMerge"))


def _of_kind(element: Element, kind: str) -> Iterator[Element]:
    return (each for each in element.iter() if short(each.tag) == kind)


def _paragraphs(shape: Element) -> list[str]:
    return [text_of(each) for each in _of_kind(shape, "a:p")]


def _item(text: str, paragraph: Element, is_list: bool) -> str:
    """A paragraph as an item of a list, if it has a bullet or stands where the layout gives it one."""
    properties = child(paragraph, "a:pPr")
    marks = {short(each.tag) for each in properties} if properties is not None else set[str]()
    has_mark = is_list and "a:buNone" not in marks
    if has_mark or not marks.isdisjoint(("a:buChar", "a:buAutoNum", "a:buBlip")):
        return f"<ul><li>{_marked(text)}</li></ul>"
    return f"<p>{_marked(text)}</p>"


def _marked(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _without_unseen(element: Element) -> None:
    kept = list[Element]()
    for each in element:
        if short(each.tag) == "mc:AlternateContent":
            found: Iterable[Element] = shown_alternative(each)
        else:
            found = () if _is_unseen(each) or (short(each.tag) == "a:tc" and _is_merged(each)) else (each,)
        for one in found:
            _without_unseen(one)
            kept.append(one)
    element[:] = kept
