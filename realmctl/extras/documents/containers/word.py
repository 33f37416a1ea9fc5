"""Word documents, in the elements that pandoc reads: what stands around words goes, what anchors them gives them up, and what no reader sees is left out."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from xml.etree.ElementTree import Element

from realmctl.extras.documents.containers.archive import (
    Archive,
    attribute,
    child,
    serialized,
    short,
    shown_alternative,
    words,
)
from realmctl.extras.documents.containers.graphics import PARTS, texts_of

WRAPPERS = frozenset(
    {"w:fldSimple", "w:hyperlink", "w:customXml", "w:dir", "w:bdo", "w:smartTag", "w:sdtContent", "w:ins", "w:moveTo"}
)
"""Elements whose content is shown as if they were not there."""
UNSEEN = frozenset(
    [
        "w:del",
        "w:moveFrom",
        "w:instrText",
        "w:delInstrText",
        "w:delText",
        "w:customXmlPr",
        "w:smartTagPr",
        "w:sdtPr",
        "w:sdtEndPr",
        "w:fldData",
        "w:softHyphen",
        "w:rubyPr",
    ]
)
"""What is deleted, says what a field computes, or is no text."""
GRAPHICS = frozenset({"w:drawing", "w:pict", "w:object"})
DELETED = {"w:tr": ("w:trPr", "w:del"), "w:tc": ("w:tcPr", "w:cellDel")}
BREAKS = {"w:cr": "br", "w:ptab": "tab"}
COLUMNS_AT_MOST = 2**10
OFF = frozenset({"0", "false", "off"})


def rewritten(archive: Archive) -> tuple[bytes, Counter[str]]:
    """The document with simpler elements, and how often each word stands in it."""
    main = next((name for kind, name in archive.related("").values() if kind == "officeDocument"), "word/document.xml")
    if main not in archive.names:
        raise ValueError("there is no document in it")
    related = archive.related(main)
    styles = next((archive.tree(name) for kind, name in related.values() if kind == "styles"), None)
    hidden = _hidden_styles(styles) if styles is not None else frozenset[str]()
    changed, counted = dict[str, bytes](), Counter[str]()
    for name in (main, *(name for kind, name in related.values() if kind in ("footnotes", "endnotes"))):
        if name not in archive.names:
            continue
        data = archive.read(name)
        root = archive.tree(name)
        assert root is not None
        _Part(archive, archive.related(name), hidden, _instructions(root)).rewrite(root, [])
        counted += words(_texts(root))
        changed[name] = serialized(root, data)
    return archive.with_parts(changed), counted


@dataclass
class _Part:
    """A part while it is rewritten.

    hidden: Ids of the styles that hide. instructions: Runs that say what a field computes.
    """

    archive: Archive
    related: dict[str, tuple[str, str]]
    hidden: frozenset[str]
    instructions: frozenset[Element]
    style: str = field(default="", init=False)
    """That of the paragraph."""

    def rewrite(self, element: Element, boxes: list[Element]) -> None:
        """Rewrite what an element holds. Paragraphs of boxes that are anchored there go to `boxes`."""
        kept = [kept for each in element for kept in self._kept(each, boxes)]
        for large, line in pairwise(kept):
            _join_capital(large, line)
        element[:] = kept

    def _kept(self, element: Element, boxes: list[Element]) -> Iterable[Element]:
        kind = short(element.tag)
        if (
            kind in UNSEEN
            or element in self.instructions
            or (kind in DELETED and child(element, *DELETED[kind]) is not None)
        ):
            return ()
        if kind == "mc:AlternateContent":
            return [kept for each in shown_alternative(element) for kept in self._kept(each, boxes)]
        if kind == "w:sdt":
            content = child(element, "w:sdtContent")
            return () if content is None else self._kept(content, boxes)
        if kind in WRAPPERS:
            self.rewrite(element, boxes)
            return list(element)
        if kind in GRAPHICS:
            boxes += self._boxes(element, element)
            return ()
        if kind in BREAKS:
            return [Element(_named(element, BREAKS[kind]))]
        if kind == "w:p":
            style = child(element, "w:pPr", "w:pStyle")
            before, self.style = self.style, (attribute(style, "w:val") or "") if style is not None else ""
            anchored = list[Element]()
            self.rewrite(element, anchored)
            self.style = before
            return [element, *anchored]
        if kind == "w:r":
            return self._runs(element, boxes)
        self.rewrite(element, boxes)
        if kind == "w:tbl":
            _widen(element)
        return [element]

    def _runs(self, run: Element, boxes: list[Element]) -> Iterator[Element]:
        """Yield a run, divided where a base with its ruby stands in it, or none if it is hidden."""
        if _is_hidden(run, self.style, self.hidden):
            return
        properties = child(run, "w:rPr")
        pieces = list[Element]()

        def piece() -> Iterator[Element]:
            if pieces:
                made = Element(run.tag)
                made[:] = ([copy.copy(properties)] if properties is not None else []) + pieces
                pieces.clear()
                yield made

        for each in run:
            kind = short(each.tag)
            if each is properties:
                continue
            if kind == "w:ruby":
                yield from piece()
                base, reading = child(each, "w:rubyBase"), child(each, "w:rt")
                for part in (base, reading):
                    if part is not None:
                        self.rewrite(part, boxes)
                yield from base if base is not None else ()
                if reading is not None and len(reading):
                    yield from (_run_of(run, "("), *reading, _run_of(run, ")"))
            elif kind == "w:fldChar":
                if (chosen := _chosen(each)) is not None:
                    yield from (*piece(), _run_of(run, chosen))
                pieces.append(each)
            else:
                pieces += self._kept(each, boxes)
        yield from piece()

    def _boxes(self, graphic: Element, near: Element) -> Iterator[Element]:
        """Yield the paragraphs and tables of text boxes, words drawn as a picture, and the words of charts and diagrams. `near` is an element of Word."""
        for each in graphic:
            kind = short(each.tag)
            if kind == "w:txbxContent":
                self.rewrite(each, [])
                yield from each
            elif kind in PARTS:
                for text in texts_of(each, self.archive, self.related):
                    yield _paragraph_of(near, text)
            elif kind == "mc:AlternateContent":
                each[:] = shown_alternative(each)
                yield from self._boxes(each, near)
            else:
                if kind == "v:textpath" and (drawn := attribute(each, "string")):
                    yield _paragraph_of(near, drawn)
                yield from self._boxes(each, near)


def _named(element: Element, name: str) -> str:
    """The tag of another element of the same namespace."""
    return f"{element.tag.partition('}')[0]}}}{name}"


def _run_of(near: Element, text: str) -> Element:
    run, inner = Element(_named(near, "r")), Element(_named(near, "t"))
    inner.text = text
    inner.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
    run.append(inner)
    return run


def _paragraph_of(near: Element, text: str) -> Element:
    paragraph = Element(_named(near, "p"))
    paragraph.append(_run_of(near, text))
    return paragraph


def _join_capital(large: Element, line: Element) -> None:
    """Put the large letter with which a line begins, and which is a paragraph before it, into the line."""
    frame = child(large, "w:pPr", "w:framePr")
    if frame is not None and attribute(frame, "w:dropCap") in ("drop", "margin") and short(line.tag) == "w:p":
        place = 1 if child(line, "w:pPr") is not None else 0
        line[place:place] = [each for each in large if short(each.tag) != "w:pPr"]
        large[:] = []


def _widen(table: Element) -> None:
    """Give a table as many columns as its longest row. pandoc takes no cell beyond them."""
    most = 0
    for row in (each for each in table if short(each.tag) == "w:tr"):
        spans = (child(cell, "w:tcPr", "w:gridSpan") for cell in row if short(cell.tag) == "w:tc")
        most = max(most, _number(child(row, "w:trPr", "w:gridBefore"), 0) + sum(_number(span, 1) for span in spans))
    columns = Element(_named(table, "tblGrid"))
    for _ in range(min(most, COLUMNS_AT_MOST)):
        columns.append(Element(_named(table, "gridCol"), {_named(table, "w"): "999"}))
    properties = child(table, "w:tblPr")
    others = [each for each in table if short(each.tag) not in ("w:tblPr", "w:tblGrid")]
    table[:] = [*([] if properties is None else [properties]), columns, *others]


def _number(element: Element | None, default: int) -> int:
    value = attribute(element, "w:val") if element is not None else None
    return int(value) if value and value.isdecimal() and len(value) < 5 else default


def _chosen(begin: Element) -> str | None:
    """The entry that a list of a form shows, which is none of its field's result; None where there is no list."""
    entries = child(begin, "w:ffData", "w:ddList")
    if entries is None:
        return None
    found = child(entries, "w:result")
    if found is None:
        found = child(entries, "w:default")
    number = (attribute(found, "w:val") or "0") if found is not None else "0"
    all_entries = [attribute(each, "w:val") or "" for each in entries if short(each.tag) == "w:listEntry"]
    return all_entries[int(number)] if number.isdecimal() and int(number) < len(all_entries) else None


def _is_on(properties: Element | None, name: str) -> bool | None:
    """Whether a property is on; None where it is not given."""
    found = child(properties, name) if properties is not None else None
    return None if found is None else attribute(found, "w:val") not in OFF


def _hidden_styles(styles: Element) -> frozenset[str]:
    """The ids of the styles that hide their text, or are based on such a one."""
    based, hides = dict[str, str](), dict[str, bool | None]()
    for style in styles:
        name, base = attribute(style, "w:styleId") or "", child(style, "w:basedOn")
        based[name] = (attribute(base, "w:val") or "") if base is not None else ""
        hides[name] = _is_on(child(style, "w:rPr"), "w:vanish")

    def is_hidden(name: str) -> bool:
        for _ in range(16):
            if hides.get(name) is not None or name not in based:
                break
            name = based[name]
        return bool(hides.get(name))

    return frozenset(filter(is_hidden, hides))


def _is_hidden(run: Element, paragraph_style: str, hidden: frozenset[str]) -> bool:
    properties = child(run, "w:rPr")
    if (told := _is_on(properties, "w:vanish")) is not None:
        return told
    style = child(properties, "w:rStyle") if properties is not None else None
    return paragraph_style in hidden or (style is not None and attribute(style, "w:val") in hidden)


def _instructions(root: Element) -> frozenset[Element]:
    """The runs between the beginning of a field and its result. None where fields do not end in order, so that no text is taken for one."""
    fields, found = list[bool](), set[Element]()  # for each open field whether its result has begun
    for run in root.iter():
        if short(run.tag) == "w:r":
            marks = [attribute(each, "w:fldCharType") for each in run if short(each.tag) == "w:fldChar"]
            if not marks and not all(fields):
                found.add(run)
            for mark in marks:
                if mark == "begin":
                    fields.append(False)
                elif not fields:
                    return frozenset()
                elif mark == "separate":
                    fields[-1] = True
                elif mark == "end":
                    fields.pop()
    return frozenset(found) if not fields else frozenset()


def _texts(root: Element) -> Iterator[str]:
    """Yield the text of each paragraph. None has another one in it."""
    for paragraph in root.iter():
        if short(paragraph.tag) == "w:p":
            parts = list[str]()
            for each in paragraph.iter():
                kind = short(each.tag)
                if kind == "w:t":
                    parts.append(each.text or "")
                elif kind in (
                    "w:br",
                    "w:tab",
                    "w:noBreakHyphen",
                    "w:sym",
                    "w:footnoteReference",
                    "w:endnoteReference",
                    "m:e",
                ):
                    parts.append(" ")
            yield "".join(parts)
