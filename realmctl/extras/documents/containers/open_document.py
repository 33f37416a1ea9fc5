"""OpenDocument texts and slides, in the elements that pandoc reads: fields and boxes become plain text, and what no reader sees is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from realmctl.extras.documents.containers.archive import Archive, attribute, child, serialized, short, words

PARAGRAPHS = frozenset({"text:p", "text:h"})
UNSEEN = frozenset(
    [
        "text:tracked-changes",
        "office:annotation",
        "office:annotation-end",
        "office:forms",
        "text:script",
        "text:table-of-content",
    ]
)
"""What is deleted, comments, definitions of forms, and the list of headings."""
INLINE = frozenset(
    ["text:span", "text:a", "text:s", "text:tab", "text:line-break", "text:note", "text:soft-page-break"]
)
"""Elements of a paragraph that pandoc reads. Others of their namespace are fields and marks, whose content is what they show."""
GROUPS = frozenset(
    [
        "text:section",
        "text:index-body",
        "text:index-title",
        "text:numbered-paragraph",
        "table:table-row-group",
        "table:table-rows",
        "table:table-columns",
        "table:table-column-group",
        "text:alphabetical-index",
        "text:bibliography",
        "text:illustration-index",
        "text:object-index",
        "text:table-index",
        "text:user-index",
    ]
)
"""Elements around blocks, whose content is shown as if they were not there."""
NOT_CHART_TEXT = frozenset({"float", "percentage", "currency"})
VALUES = "form:current-value", "form:value", "form:label"
BREAKS = PARAGRAPHS | {"text:s", "text:tab", "text:line-break", "text:note", "text:note-body"}


def rewritten(archive: Archive) -> tuple[bytes, Counter[str]]:
    """The text, or the slides as a text, with simpler elements, and how often each word stands in it."""
    root = archive.tree("content.xml")
    if root is None:
        raise ValueError("there is no document in it")
    data = archive.read("content.xml")
    trees = [root, *(found for found in (archive.tree("styles.xml"),) if found is not None)]
    content = _Content(archive, _hidden_styles(trees), _controls(root))
    body = child(root, "office:body")
    for each in body if body is not None else ():
        if short(each.tag) == "office:presentation":
            content.flatten_slides(each)
        content.rewrite(each)
    return archive.with_parts({"content.xml": serialized(root, data)}), words(
        ["".join(_texts(body))] if body is not None else ()
    )


@dataclass(frozen=True)
class _Content:
    """A content.xml while it is rewritten.

    hidden: Names of the styles that hide. controls: What the controls of forms show, by their ids.
    """

    archive: Archive
    hidden: frozenset[str]
    controls: Mapping[str, str]

    def rewrite(self, parent: Element) -> None:
        """Rewrite the blocks in an element."""
        kept = list[Element]()
        for each in parent:
            kept += self._blocks(each)
        parent[:] = kept

    def _blocks(self, element: Element) -> list[Element]:
        """What becomes of a block: itself, what it holds, or nothing."""
        kind = short(element.tag)
        if kind in UNSEEN or kind.endswith("-source") or self._is_hidden(element):
            return []
        if kind in PARAGRAPHS:
            boxes = list[Element]()
            self._rewrite_inline(element, boxes)
            return [element, *boxes]
        if kind.startswith("draw:"):
            return self._boxes(element)
        if kind == "table:covered-table-cell":
            element.clear()
        elif kind == "text:list-header":
            element.tag = _named(element, "list-item")
        self.rewrite(element)
        return list(element) if kind in GROUPS else [element]

    def _rewrite_inline(self, parent: Element, boxes: list[Element]) -> None:
        """Rewrite what a paragraph holds. The blocks of boxes that are anchored there go to `boxes`."""
        for each in parent:
            kind = short(each.tag)
            if kind in UNSEEN or self._is_hidden(each):
                _empty(each)
            elif kind == "text:note":
                for body in each:
                    if short(body.tag) == "text:note-body":
                        self.rewrite(body)
            elif kind == "draw:control":
                shown = self.controls.get(attribute(each, "draw:control") or "", "")
                _empty(each, f" {shown} " if shown else "")
            elif kind.startswith("draw:"):
                if kind == "draw:a":
                    self._rewrite_inline(each, boxes)
                elif found := self._boxes(each):
                    boxes += found
                    _empty(each)
            elif kind == "text:ruby":
                for part in each:
                    if short(part.tag) == "text:ruby-text" and "".join(part.itertext()).strip():
                        part.text = f"({part.text or ''}"
                        last = part[-1] if len(part) else None
                        if last is None:
                            part.text += ")"
                        else:
                            last.tail = f"{last.tail or ''})"
                self._rewrite_inline(each, boxes)
                _rename(each)
            else:
                self._rewrite_inline(each, boxes)
                if kind not in INLINE and (each.text or len(each)):
                    _rename(each)

    def _boxes(self, shape: Element) -> list[Element]:
        """The blocks in a shape and in the shapes of its group; the words of a chart."""
        found = list[Element]()
        for each in shape:
            kind = short(each.tag)
            if kind in PARAGRAPHS or kind in ("text:list", "table:table"):
                found += self._blocks(each)
            elif kind == "draw:object":
                found += self._chart(each)
            elif kind.startswith("draw:") and not self._is_hidden(each):
                found += self._boxes(each)
        return found

    def _chart(self, graphic: Element) -> Iterator[Element]:
        """Yield the paragraphs of a chart that stands in a part of its own, without those of its numbers."""
        href = next((value for name, value in graphic.items() if name.endswith("}href")), "")
        root = self.archive.tree(f"{href.removeprefix('./')}/content.xml")
        body = child(root, "office:body") if root is not None else None
        if body is None or short(body[0].tag if len(body) else "") != "office:chart":
            return
        numbers = {
            id(paragraph)
            for cell in body.iter()
            if short(cell.tag) == "table:table-cell" and attribute(cell, "office:value-type") in NOT_CHART_TEXT
            for paragraph in cell
        }
        yield from (each for each in body.iter() if short(each.tag) == "text:p" and id(each) not in numbers)

    def flatten_slides(self, presentation: Element) -> None:
        """Make a text of slides: the blocks of each, the title as a heading, and the notes, which begin with the word that marks them."""
        blocks = list[Element]()
        for page in presentation:
            if short(page.tag) != "draw:page" or self._is_hidden(page):
                continue
            for shape in sorted(page, key=lambda each: attribute(each, "presentation:class") != "title"):
                role, kind = attribute(shape, "presentation:class"), short(shape.tag)
                if kind == "presentation:notes":
                    notes = [
                        each
                        for frame in shape
                        if attribute(frame, "presentation:class") == "notes"
                        for each in self._boxes(frame)
                    ]
                    if notes:
                        notes[0].text = f"Notes: {notes[0].text or ''}"
                    blocks += notes
                elif kind.startswith("draw:") and role not in ("page-number", "footer", "header", "date-time"):
                    found = self._boxes(shape)
                    for each in found if role == "title" else ():
                        if short(each.tag) == "text:p":
                            each.tag = _named(each, "h")
                            each.set(_named(each, "outline-level"), "2")
                    blocks += found
        presentation.tag = _named(presentation, "text")
        presentation[:] = blocks

    def _is_hidden(self, element: Element) -> bool:
        kind = short(element.tag)
        if attribute(element, "text:is-hidden") == "true" or attribute(element, "table:visibility") in (
            "collapse",
            "filter",
        ):
            return True
        if attribute(element, "text:display") == "none" and attribute(element, "text:is-hidden") != "false":
            return True
        style = attribute(element, "draw:style-name" if kind == "draw:page" else "text:style-name")
        if style in self.hidden and kind in ("text:span", "text:p", "text:h", "draw:page"):
            return True
        return kind in PARAGRAPHS and any(
            short(each.tag) == "text:hidden-paragraph" and attribute(each, "text:is-hidden") == "true"
            for each in element
        )


def _named(element: Element, name: str) -> str:
    """The tag of another element of the same namespace."""
    return f"{element.tag.partition('}')[0]}}}{name}"


def _rename(element: Element) -> None:
    """Make a field plain text."""
    element.tag = f"{{{TEXT}}}span"
    element.attrib.clear()


def _empty(element: Element, text: str = "") -> None:
    """Leave of an element no more than this text, and what stands behind it."""
    tail = element.tail
    element.clear()
    element.text, element.tail = text, tail
    _rename(element)


TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


def _hidden_styles(trees: list[Element]) -> frozenset[str]:
    """The names of the styles that hide a text or a slide, or have a parent that does."""
    parents, hides = dict[str, str](), dict[str, bool]()
    for style in (each for root in trees for each in root.iter() if short(each.tag) == "style:style"):
        name = attribute(style, "style:name") or ""
        parents[name] = attribute(style, "style:parent-style-name") or ""
        for properties in style:
            if (display := attribute(properties, "text:display")) is not None:
                hides[name] = display == "none"
            if attribute(properties, "presentation:visibility") == "hidden":
                hides[name] = True

    def is_hidden(name: str) -> bool:
        for _ in range(16):
            if name in hides or name not in parents:
                break
            name = parents[name]
        return hides.get(name, False)

    return frozenset(filter(is_hidden, parents))


def _controls(root: Element) -> dict[str, str]:
    """What the controls of forms show, by their ids."""
    found = dict[str, str]()
    for each in root.iter():
        kind = short(each.tag)
        if kind.startswith("form:") and kind not in ("form:password", "form:hidden"):
            chosen = [
                attribute(option, "form:label") or ""
                for option in each
                if attribute(option, "form:current-selected") == "true"
            ]
            shown = next((value for name in VALUES if (value := attribute(each, name))), "")
            for name in ("form:id", "xml:id"):
                if identity := attribute(each, name):
                    found[identity] = ", ".join(chosen) if chosen else shown
    return found


def _texts(element: Element) -> Iterator[str]:
    """Yield the texts of an element, with blanks where a reader sees the end of a word."""
    kind = short(element.tag)
    if kind in BREAKS:
        yield " "
    if kind != "text:note-citation":
        yield element.text or ""
        for each in element:
            yield from _texts(each)
            yield each.tail or ""
    if kind in BREAKS:
        yield " "
