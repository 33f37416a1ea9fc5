"""Spreadsheets of OpenDocument as a page of HTML: a heading and a table for each sheet, with the texts that a reader sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape
from xml.etree.ElementTree import Element

from realmctl.extras.documents.containers.archive import Archive, attribute, child, short, words
from realmctl.extras.documents.containers.open_document import BREAKS, UNSEEN
from realmctl.extras.documents.containers.sheets import EMPTY_CELLS

GROUPS = frozenset({"table:table-row-group", "table:table-rows", "table:table-header-rows", "table:table-column-group", "table:table-columns", "table:table-header-columns"})  # fmt: skip
HIDDEN = frozenset({"collapse", "filter"})
MOST_COLUMNS = 2**14
"""Columns of a sheet in the programs that write them."""


def html_of(archive: Archive) -> tuple[str, Counter[str]]:
    """The sheets that are shown as HTML, and how often each word stands in them."""
    root = archive.tree("content.xml")
    book = child(root, "office:body", "office:spreadsheet") if root is not None else None
    if root is None or book is None:
        raise ValueError("there is no spreadsheet in it")
    unseen = _hidden_styles(root)
    lines, shown = list[str](), list[str]()
    for sheet in (each for each in book if short(each.tag) == "table:table"):
        if attribute(sheet, "table:style-name") in unseen:
            continue
        lines += [f"<h2>{escape(attribute(sheet, 'table:name') or '')}</h2>", "<table>"]
        for row in _rows(sheet):
            lines.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>")
            shown += row
        lines.append("</table>")
        for text in _drawn(archive, sheet):
            lines.append(f"<p>{escape(text)}</p>")
            shown.append(text)
    return "\n".join(lines), words(shown)


def _hidden_styles(root: Element) -> set[str | None]:
    return {
        attribute(style, "style:name")
        for style in root.iter()
        if short(style.tag) == "style:style"
        and any(attribute(properties, "table:display") == "false" for properties in style)
    }


def _flat(parent: Element, kind: str) -> Iterator[Element]:
    """Yield the rows or columns of a sheet, also those in groups."""
    for each in parent:
        if short(each.tag) == kind:
            yield each
        elif short(each.tag) in GROUPS and attribute(each, "table:display") != "false":
            yield from _flat(each, kind)


def _count(element: Element, name: str) -> int:
    value = attribute(element, name) or ""
    return min(int(value), MOST_COLUMNS) if value.isdecimal() and len(value) < 8 else 1


def _rows(sheet: Element) -> Iterator[list[str]]:
    """Yield the cells of each row that is shown and has a text. A row that is repeated stands once for each time, if it has a text."""
    hidden, place = set[int](), 0
    for column in _flat(sheet, "table:table-column"):
        count = _count(column, "table:number-columns-repeated")
        if attribute(column, "table:visibility") in HIDDEN:
            hidden |= {*range(place, min(place + count, MOST_COLUMNS))}
        place += count
    for row in _flat(sheet, "table:table-row"):
        if attribute(row, "table:visibility") in HIDDEN:
            continue
        cells, place, empty = list[str](), 0, 0
        for cell in row:
            if short(cell.tag) not in ("table:table-cell", "table:covered-table-cell"):
                continue
            count = _count(cell, "table:number-columns-repeated")
            text = "" if short(cell.tag) == "table:covered-table-cell" else _cell(cell)
            seen = sum(number not in hidden for number in range(place, min(place + count, MOST_COLUMNS)))
            place += count
            if text:
                cells += [""] * min(empty, EMPTY_CELLS) + [text] * min(seen, EMPTY_CELLS)
                empty = 0 if seen else empty
            else:
                empty += seen
        if cells:
            yield from [cells] * min(_count(row, "table:number-rows-repeated"), EMPTY_CELLS)


def _cell(cell: Element) -> str:
    return " ".join(" ".join(_texts(each)) for each in cell if short(each.tag) == "text:p").strip()


def _texts(element: Element) -> Iterator[str]:
    yield from " ".join("".join(_pieces(element)).split()).split()


def _pieces(element: Element) -> Iterator[str]:
    kind = short(element.tag)
    if kind in UNSEEN:
        return
    yield (" " if kind in BREAKS else "") + (element.text or "")
    for each in element:
        yield from _pieces(each)
        yield each.tail or ""


def _drawn(archive: Archive, sheet: Element) -> Iterator[str]:
    """Yield the paragraphs of shapes and charts on a sheet."""
    for each in sheet.iter():
        kind = short(each.tag)
        if kind == "draw:object":
            href = next((value for name, value in each.items() if name.endswith("}href")), "")
            root = archive.tree(f"{href.removeprefix('./')}/content.xml")
            body = child(root, "office:body", "office:chart", "chart:chart") if root is not None else None
            for part in body if body is not None else ():
                if short(part.tag) in ("chart:title", "chart:subtitle"):
                    yield " ".join(_texts(part))
        elif kind in ("draw:text-box", "draw:custom-shape"):
            yield from (" ".join(_texts(part)) for part in each if short(part.tag) == "text:p")
