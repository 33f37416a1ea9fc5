"""The program that reads the lines of a PDF by pdfium, in a process of its own: a damaged file may take it down, or its memory.

It imports nothing of realmctl. The PDF comes on stdin; the limits are its arguments. A JSON object for each page goes to stdout, after one
for the file, and one with `error` if it cannot be read.
"""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from ctypes import POINTER, Array, byref, c_char, c_double, c_int, c_ushort, cast, create_string_buffer
from functools import lru_cache
from math import hypot, isfinite
from typing import Any

import pypdfium2
from pypdfium2 import raw

SOFT_HYPHEN = "\u00ad"
HYPHENS = {0x2, 0xFFFE}
"""What pdfium gives for a hyphen that divides a word at the end of a line."""
LINE_ENDS = {0xA, 0xD}
PLAIN = 0x20, 0x7F
"""The first character that is what it says, and the first behind them."""
HIGH_SURROGATES, LOW_SURROGATES = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
SIZES = 0.1, 10_000.0
"""The smallest and the largest size of a font in points; others are cut to these."""
LIGATURES = str.maketrans(dict(enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"), 0xFB00)))

SAMPLED = 60
"""Characters of a page whose direction is asked for, about."""
GAP = re.compile(r"(?<=\S)\s+(?=\S)")
GUTTER = 12.0
"""Least width of a gap between two columns, in points."""
MOST_OBJECTS = 1000
"""Objects of a page without text among which a picture is looked for."""
NOT_SEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
PASSWORD = 2**13
"""The flag of a field whose value is not shown."""
CHOICES = {raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
LONGEST_VALUE = 2**20
"""Bytes of a value that are read."""
SIZE_OF_VALUES = 10.0
"""Of the font of a value on a page without lines, in points."""
LONGEST_NAME = 128
"""Bytes of the name of a font that are read."""
LEFT, RIGHT, BOTTOM, TOP = c_double(), c_double(), c_double(), c_double()
MATRIX, NAME, FLAGS = raw.FS_MATRIX(), create_string_buffer(LONGEST_NAME), c_int()
"""Where pdfium writes what it is asked of a character: the left, right, bottom and top, the matrix, and the name and the flags of the font."""
BOX_AT, MATRIX_AT, FLAGS_AT = [*map(byref, (LEFT, RIGHT, BOTTOM, TOP))], byref(MATRIX), byref(FLAGS)

Turned = tuple[int, float, float, float, float]
"""How far a page is turned, in degrees, its width and height then, and where it begins from the left and from below before, in points."""
PageLine = dict[str, Any]
"""A line, with the fields of `page_layout.Line`."""
Characters = list[tuple[int, str]]
"""Characters of a line, each with its number on the page."""


def main(most_pages: int, most_characters: int, most_lines: int) -> None:
    characters = lines = 0
    try:
        with pypdfium2.PdfDocument(sys.stdin.buffer.read()) as pdf:
            if len(pdf) > most_pages:
                say(error=f"it has {len(pdf):,} pages, and at most {most_pages:,} are read")
                return
            is_xfa = pdf.get_formtype() in (raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND)
            say(is_xfa=is_xfa, **{name: pdf.get_metadata_value(name) for name in ("Title", "Author", "CreationDate")})
            if pdf.get_formtype() != raw.FORMTYPE_NONE:
                pdf.init_forms()
            for number in range(len(pdf)):
                page = read_page(pdf[number], pdf.formenv.raw if pdf.formenv else None)
                characters += sum(len(line["text"]) for line in page["lines"])
                lines += len(page["lines"])
                if characters > most_characters or lines > most_lines:
                    say(error=f"it has more than {most_characters:,} characters, or {most_lines:,} lines")
                    return
                say(**page)
    except pypdfium2.PdfiumError as error:
        say(
            error="it needs a password"
            if "password" in str(error).lower()
            else f"it is damaged: {str(error).rstrip('.')}"
        )


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def read_page(page: pypdfium2.PdfPage, form: Any = None) -> dict[str, Any]:
    """The height of a page, its lines in the order of its content (`lines`), how many characters are unknown, since their font does not name them, and
    whether it shows a picture and no text (`is_picture`).

    What was filled into the fields of a form, and text that was put on the page, stands behind the lines before it.
    """
    with closing(page), closing(upright(page)) as text_page:
        lines, line, high, unknown = list[PageLine](), Characters(), 0, 0
        handle, code_of, (plain, not_plain) = (
            text_page.raw,
            raw.FPDFText_GetUnicode,
            PLAIN,
        )  # they are looked up for every character otherwise
        for place in range(text_page.count_chars()):
            code = code_of(handle, place)
            if plain <= code < not_plain:
                line.append((place, chr(code)))
                high = 0
                continue
            if code in HIGH_SURROGATES:
                high = code
                continue
            if code in LOW_SURROGATES and high:
                code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
            high = 0
            is_hyphen = code in HYPHENS and raw.FPDFText_IsHyphen(text_page, place) == 1
            if is_hyphen:
                line.append((place, SOFT_HYPHEN))
            elif code not in LINE_ENDS:
                known = is_known(code)
                unknown += not known
                line.append((place, chr(code) if known else " "))
            if is_hyphen or code in LINE_ENDS:
                lines += with_parts(text_page, line)
                line = []
        lines += with_parts(text_page, line)
        _, width, height, *_ = text_page.turned
        lines = [
            each
            for each in lines
            if each["right"] > 0 and each["left"] < width and -each["size"] < each["base"] < height
        ] or lines  # what is not off the page; where all is off it, the page is what is wrong
        for value in filled_in(page, form, text_page.turned):
            put(lines, value)
        is_picture = not lines and any(
            raw.FPDFPageObj_GetType(raw.FPDFPage_GetObject(page, number)) == raw.FPDF_PAGEOBJ_IMAGE
            for number in range(min(raw.FPDFPage_CountObjects(page), MOST_OBJECTS))
        )
        return {"height": page.get_height(), "lines": lines, "unknown": unknown, "is_picture": is_picture}


def upright(page: pypdfium2.PdfPage) -> pypdfium2.PdfTextPage:
    """The text of a page that is turned so that most of its text runs from left to right: pdfium orders lines as they stand on the page that a viewer shows."""
    text_page = page.get_textpage()
    count, directions = text_page.count_chars(), [0, 0, 0, 0]
    for place in range(0, count, 1 + count // SAMPLED):
        matrix = raw.FS_MATRIX()
        if raw.FPDFText_GetMatrix(text_page, place, byref(matrix)) and (matrix.a or matrix.b):
            directions[(0 if matrix.a > 0 else 2) if abs(matrix.a) >= abs(matrix.b) else 1 if matrix.b > 0 else 3] += 1
    wanted = 90 * max(range(4), key=directions.__getitem__)
    if wanted != page.get_rotation() and any(directions):
        text_page.close()
        page.set_rotation(wanted)
        text_page = page.get_textpage()
    x, y, *_ = page.get_cropbox()
    text_page.turned = page.get_rotation(), page.get_width(), page.get_height(), x, y
    return text_page


def with_parts(text_page: pypdfium2.PdfTextPage, line: Characters) -> list[PageLine]:
    """The line of these characters, with the lines between its wide gaps as `parts`; none if all are spaces."""
    cuts = [0]
    handle, is_generated = text_page.raw, raw.FPDFText_IsGenerated
    for gap in GAP.finditer("".join([each for _, each in line])):
        begin, end = gap.span()
        if is_generated(handle, line[end - 1][0]) != 1:
            continue
        if abs(edges(text_page, line[end][0])[0] - edges(text_page, line[begin - 1][0])[1]) > GUTTER:
            cuts.append(end)
    found = measured(text_page, line)
    if found and len(cuts) > 1:
        found[0]["parts"] = [
            part
            for begin, end in zip(cuts, [*cuts[1:], len(line)], strict=True)
            for part in measured(text_page, line[begin:end])
        ]
    return found


def filled_in(page: pypdfium2.PdfPage, form: Any, turned: Turned) -> Iterator[PageLine]:
    """Yield the lines of the values of a form's fields on the page that a viewer shows, and of text that was put on the page."""
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        try:
            if raw.FPDFAnnot_GetFlags(annotation) & NOT_SEEN:
                continue
            kind, value = raw.FPDFAnnot_GetSubtype(annotation), ""
            if kind == raw.FPDF_ANNOT_WIDGET and form is not None:
                value = value_of(form, annotation)
            elif kind == raw.FPDF_ANNOT_FREETEXT:
                value = text_of(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
            box = raw.FS_RECTF()
            if not value.strip() or not raw.FPDFAnnot_GetRect(annotation, byref(box)):
                continue
            lines = [" ".join(line.split()) for line in value.splitlines() if line.strip()]
            left, right, bottom, top = (
                edge if isfinite(edge) else 0.0 for edge in shown(turned, box.left, box.right, box.bottom, box.top)
            )
            for place, text in enumerate(lines):
                base = top - (top - bottom) * (place + 0.75) / len(lines)
                yield {
                    "text": text,
                    "left": left,
                    "right": right,
                    "base": base if isfinite(base) else 0.0,
                    "is_bold": False,
                }
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def value_of(form: Any, annotation: Any) -> str:
    """What a field shows: its value, or the names of the options that are chosen; nothing of buttons and passwords."""
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in CHOICES:
        chosen = [
            text_of(raw.FPDFAnnot_GetOptionLabel, form, annotation, number)
            for number in range(raw.FPDFAnnot_GetOptionCount(form, annotation))
            if raw.FPDFAnnot_IsOptionSelected(form, annotation, number)
        ]
        if chosen:
            return "\n".join(chosen)
    elif kind != raw.FPDF_FORMFIELD_TEXTFIELD or raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & PASSWORD:
        return ""
    return text_of(raw.FPDFAnnot_GetFormFieldValue, form, annotation)


def text_of(function: Any, *arguments: Any) -> str:
    """The text that a function of pdfium writes in UTF-16: it is asked for the number of bytes first."""
    size = min(function(*arguments, None, 0), LONGEST_VALUE)
    if size <= 2:
        return ""
    buffer: Array[c_char] = create_string_buffer(size)
    function(*arguments, cast(buffer, POINTER(c_ushort)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", errors="replace")


def put(lines: list[PageLine], value: PageLine) -> None:
    """Put the line of a value behind the line that it stands beside, or else behind the nearest line above."""
    left, base = value["left"], value["base"]
    near = [
        (abs(line["base"] - base) if line["base"] > base else 0.0, abs(left - line["left"]), number)
        for number, line in enumerate(lines)
        if line["base"] > base + 0.6 * line["size"]
        or (abs(line["base"] - base) <= 0.6 * line["size"] and line["left"] <= left)
    ]
    place = min(near)[2] if near else -1
    size = lines[place]["size"] if lines else SIZE_OF_VALUES
    if near and abs(lines[place]["base"] - base) <= 0.6 * size:
        value["base"] = lines[place]["base"]
    word = size * len(value["text"].partition(" ")[0]) / 2
    right = min(value["right"], left + size * len(value["text"]) / 2)
    lines.insert(place + 1, {**value, "right": right, "word": word, "size": size})


def is_known(code: int) -> bool:
    """Whether a number is that of a character, and not of a glyph in a font."""
    return (
        code in (0x9, 0xAD)
        or PLAIN[0] <= code < PLAIN[1]
        or 0xA0 <= code < 0xD800
        or 0xE000 <= code < 0xFFFD
        or 0x10000 <= code < 0x110000
    )


def measured(text_page: pypdfium2.PdfTextPage, characters: Characters) -> list[PageLine]:
    """The line of these characters; none if all are spaces."""
    seen = [place for place, each in characters if not each.isspace() and each != SOFT_HYPHEN]
    if not seen:
        return []
    text = " ".join("".join([each for _, each in characters]).translate(LIGATURES).split())
    size, is_bold = sorted(font(text_page, seen[number * (len(seen) - 1) // 4]) for number in range(5))[2]
    breaks = (number for number, (place, each) in enumerate(characters) if place > seen[0] and each.isspace())
    word_end = characters[next(breaks, len(characters)) - 1][0]
    left, x, y = edges(text_page, seen[0])[0], c_double(), c_double()
    raw.FPDFText_GetCharOrigin(text_page, seen[0], byref(x), byref(y))
    right, word = edges(text_page, seen[-1])[1], edges(text_page, word_end)[1] - left
    base = shown(text_page.turned, x.value, x.value, y.value, y.value)[2]
    placed = {"left": left, "right": right, "base": base, "word": word, "size": size}
    return [
        {
            "text": text,
            "is_bold": is_bold,
            **{name: value if isfinite(value) else 0.0 for name, value in placed.items()},
        }
    ]


def edges(text_page: pypdfium2.PdfTextPage, place: int) -> tuple[float, float]:
    """Where a character begins and ends, in points from the left."""
    raw.FPDFText_GetCharBox(text_page.raw, place, *BOX_AT)
    turned = text_page.turned
    if not turned[0]:
        return LEFT.value - turned[3], RIGHT.value - turned[3]
    return shown(turned, LEFT.value, RIGHT.value, BOTTOM.value, TOP.value)[:2]


def shown(turned: Turned, left: float, right: float, bottom: float, top: float) -> tuple[float, float, float, float]:
    """A box on the page as it is turned: pdfium says it for the page that is not."""
    rotation, width, height, x, y = turned
    left, right, bottom, top = left - x, right - x, bottom - y, top - y
    if rotation == 90:
        return bottom, top, height - right, height - left
    if rotation == 180:
        return width - right, width - left, height - top, height - bottom
    return (width - top, width - bottom, left, right) if rotation == 270 else (left, right, bottom, top)


def font(text_page: pypdfium2.PdfTextPage, place: int) -> tuple[float, bool]:
    """Size of a character's font on the page, in points, and whether it is a bold one."""
    handle = text_page.raw
    raw.FPDFText_GetMatrix(handle, place, MATRIX_AT)
    raw.FPDFText_GetFontInfo(handle, place, NAME, LONGEST_NAME, FLAGS_AT)
    return size_of(raw.FPDFText_GetFontSize(handle, place) * hypot(MATRIX.c, MATRIX.d)), b"bold" in NAME.value.lower()


@lru_cache(1024)
def size_of(points: float) -> float:
    return min(max(round(points, 1), SIZES[0]), SIZES[1])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
