"""Workbooks of Excel as a page of HTML: a heading and a table for each sheet, with the numbers and dates that a reader sees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from html import escape
from xml.etree.ElementTree import Element

from realmctl.extras.documents.containers.archive import Archive, attribute, child, short, words
from realmctl.extras.documents.containers.graphics import PARTS, text_of, texts_of

BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    14: "d/m/y",
    18: "h:mm",
    19: "h:mm",
    20: "h:mm",
    21: "h:mm",
    22: "d/m/y h:mm",
}
BUILT_IN |= dict.fromkeys((15, 16, 17, *range(27, 37), *range(50, 59)), "d/m/y") | dict.fromkeys((45, 46, 47), "h:mm")
"""The formats of numbers that have no code in the file (ECMA-376, part 1, 18.8.30), as far as they say what a number is."""
PLAIN_NUMBER = re.compile(r"(#,##)?0(?:\.(0+))?(%)?")
SEMICOLON = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""What divides the parts of a format, outside quotes."""
LONGEST_CODE = 255
"""Characters of a format in Excel."""
NO_CODE = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
"""Parts of a format that stand for themselves, colours and conditions."""
REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
EMPTY_CELLS = 64
"""Empty cells in a row before one that is not. More are left out."""
TRUE = frozenset({"1", "true"})


def html_of(archive: Archive) -> tuple[str, Counter[str]]:
    """The sheets that are shown as HTML, and how often each word stands in them."""
    main = next((name for kind, name in archive.related("").values() if kind == "officeDocument"), "")
    workbook, related = archive.tree(main), archive.related(main)
    if workbook is None:
        raise ValueError("there is no workbook in it")
    parts = dict(related.values())
    texts = [_text(each) for each in _parts(archive.tree(parts.get("sharedStrings", "")))]
    codes = _codes(archive.tree(parts.get("styles", "")))
    properties = child(workbook, "x:workbookPr")
    first = (
        datetime(1904, 1, 1)
        if properties is not None and properties.get("date1904") in TRUE
        else datetime(1899, 12, 30)
    )
    lines, shown = list[str](), list[str]()
    for sheet in _parts(child(workbook, "x:sheets")):
        name = related.get(attribute(sheet, "r:id") or "", ("", ""))[1]
        root = archive.tree(name)
        if root is None or sheet.get("state", "visible") != "visible":
            continue
        lines += [f"<h2>{escape(sheet.get('name', ''))}</h2>", "<table>"]
        for row in _rows(root, texts, codes, first):
            lines.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>")
            shown += row
        lines.append("</table>")
        drawings = [part for kind, part in archive.related(name).values() if kind == "drawing"]
        for text in (text for part in drawings for text in _drawn(archive, part)):
            lines.append(f"<p>{escape(text)}</p>")
            shown.append(text)
    return "\n".join(lines), words(shown)


def _parts(element: Element | None) -> Iterable[Element]:
    return () if element is None else element


def _text(element: Element) -> str:
    """The text of a string, without how it is pronounced."""
    if short(element.tag) == "x:t":
        return element.text or ""
    return "".join(_text(each) for each in element if short(each.tag) != "x:rPh")


def _codes(styles: Element | None) -> list[str]:
    """The format of numbers of each style of cells."""
    if styles is None:
        return []
    own = {each.get("numFmtId", ""): each.get("formatCode", "") for each in _parts(child(styles, "x:numFmts"))}
    known = {str(number): code for number, code in BUILT_IN.items()}
    return [{**known, **own}.get(each.get("numFmtId", ""), "") for each in _parts(child(styles, "x:cellXfs"))]


def _rows(sheet: Element, texts: list[str], codes: list[str], first: datetime) -> Iterator[list[str]]:
    """Yield the cells of each row that is shown, up to the last that is not empty."""
    hidden = [
        range(int(each.get("min", "0")), int(each.get("max", "0")) + 1)
        for each in _parts(child(sheet, "x:cols"))
        if each.get("hidden") in TRUE
    ]
    for row in _parts(child(sheet, "x:sheetData")):
        if row.get("hidden") in TRUE:
            continue
        cells, place = list[str](), 0
        for cell in row:
            found = REFERENCE.fullmatch(cell.get("r", ""))
            column = _column(found[1]) if found else place + 1
            is_hidden = any(column in each for each in hidden)
            value = "" if is_hidden else " ".join(_value(cell, texts, codes, first).split())
            if value:
                before = range(place + 1, min(column, place + EMPTY_CELLS))
                cells += ["" for each in before if not any(each in one for one in hidden)]
                cells.append(value)
                place = column
        if cells:
            yield cells


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def _value(cell: Element, texts: list[str], codes: list[str], first: datetime) -> str:
    """What a cell shows."""
    kind, inner = cell.get("t", "n"), child(cell, "x:v")
    value = (inner.text or "") if inner is not None else ""
    style = cell.get("s", "0")
    code = codes[int(style)] if style.isdecimal() and int(style) < len(codes) else ""
    if ";" in code and _is_hidden_by(code, value if kind == "n" else ""):
        return ""
    if kind == "inlineStr":
        string = child(cell, "x:is")
        return _text(string) if string is not None else ""
    if kind == "s":
        return texts[int(value)] if value.isdecimal() and int(value) < len(texts) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if kind != "n" or not value:
        return value.removesuffix("T00:00:00") if kind == "d" else value
    return _number(value, code, first)


def _is_hidden_by(code: str, value: str) -> bool:
    """Whether a format shows nothing for this number, or for a text: its parts are for what is above 0, below, 0 and for texts."""
    parts = SEMICOLON.split(code[:LONGEST_CODE])
    try:
        number = float(value)
        place = 1 if number < 0 else 0 if number > 0 or len(parts) < 3 else 2
    except ValueError:
        place = 3
    return place < len(parts) and not parts[place].strip()


def _number(value: str, code: str, first: datetime) -> str:
    """A number as its format shows it: a date by ISO 8601, a percentage, digits behind the point; else with 15 digits at most."""
    try:
        number = float(value)
    except ValueError:
        return value
    code = NO_CODE.sub("", code.partition(";")[0]).strip()
    if plain := PLAIN_NUMBER.fullmatch(code):
        shown = f"{number * (100 if plain[3] else 1):{',' if plain[1] else ''}.{len(plain[2] or '')}f}"
        return shown + (plain[3] or "")
    letters = {*code.lower()} if code.lower() != "general" else set[str]()
    if letters & {*"ymdhs"} and 0 <= number < 2958466:
        day = first + timedelta(days=number, microseconds=500_000)
        date, clock = f"{day:%Y-%m-%d}", f"{day:%H:%M:%S}".removesuffix(":00")
        has_date, has_clock = bool(letters & {*"yd"}) or not letters & {*"hs"}, bool(letters & {*"hs"})
        return f"{date} {clock}" if has_date and has_clock else date if has_date else clock
    return f"{100 * number:.15g}%" if "%" in code else f"{number:.15g}"


def _drawn(archive: Archive, name: str) -> Iterable[str]:
    """Yield the texts of the shapes and charts on a sheet."""
    root, related = archive.tree(name), archive.related(name)
    for each in root.iter() if root is not None else ():
        kind = short(each.tag)
        if kind == "a:p":
            yield text_of(each)
        elif kind in PARTS:
            yield from texts_of(each, archive, related)
