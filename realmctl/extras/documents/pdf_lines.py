"""The program that reads the lines of a PDF by pdfium, in a process of its own: a damaged file may take it down, or its memory.

It imports nothing of realmctl. The PDF comes on stdin; the limits are its arguments. A JSON object for each page goes to stdout, after one
for the file, and one with `error` if it cannot be read.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from ctypes import POINTER, Array, byref, c_char, c_double, c_int, c_ushort, cast, create_string_buffer
from math import hypot, isfinite
from typing import Any

import pypdfium2
from pypdfium2 import raw

SOFT_HYPHEN = "\u00ad"
HYPHENS = {0x2, 0xFFFE}
"""What pdfium gives for a hyphen that divides a word at the end of a line."""
LINE_ENDS = {0xA, 0xD}
HIGH_SURROGATES, LOW_SURROGATES = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
SIZES = 0.1, 10_000.0
"""The smallest and the largest size of a font in points; others are cut to these."""
LIGATURES = str.maketrans(dict(enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"), 0xFB00)))

NOT_SEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
PASSWORD = 2**13
"""The flag of a field whose value is not shown."""
CHOICES = {raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
LONGEST_VALUE = 2**20
"""Bytes of a value that are read."""
SIZE_OF_VALUES = 10.0
"""Of the font of a value on a page without lines, in points."""

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
            say(**{name: pdf.get_metadata_value(name) for name in ("Title", "Author", "CreationDate")})
            if pdf.get_formtype() != raw.FORMTYPE_NONE:
                pdf.init_forms()
            for number in range(len(pdf)):
                height, page, unknown = read_page(pdf[number], pdf.formenv.raw if pdf.formenv else None)
                characters += sum(len(line["text"]) for line in page)
                lines += len(page)
                if characters > most_characters or lines > most_lines:
                    say(error=f"it has more than {most_characters:,} characters, or {most_lines:,} lines")
                    return
                say(height=height, lines=page, unknown=unknown)
    except pypdfium2.PdfiumError as error:
        say(
            error="it needs a password"
            if "password" in str(error).lower()
            else f"it is damaged: {str(error).rstrip('.')}"
        )


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def read_page(page: pypdfium2.PdfPage, form: Any = None) -> tuple[float, list[PageLine], int]:
    """The height of a page, its lines in the order of its content, and how many characters are unknown: their font does not name them.

    What was filled into the fields of a form, and text that was put on the page, stands behind the lines before it.
    """
    with closing(page), closing(page.get_textpage()) as text_page:
        lines, line, high, unknown = list[PageLine](), Characters(), 0, 0
        for place in range(text_page.count_chars()):
            code = raw.FPDFText_GetUnicode(text_page, place)
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
                lines += measured(text_page, line)
                line = []
        lines += measured(text_page, line)
        for value in filled_in(page, form):
            put(lines, value)
        return page.get_height(), lines, unknown


def filled_in(page: pypdfium2.PdfPage, form: Any) -> Iterator[PageLine]:
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
            for place, text in enumerate(lines):
                base = box.top - (box.top - box.bottom) * (place + 0.75) / len(lines)
                left, right = (edge if isfinite(edge) else 0.0 for edge in (box.left, box.right))
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
        or 0x20 <= code < 0x7F
        or 0xA0 <= code < 0xD800
        or 0xE000 <= code < 0xFFFD
        or 0x10000 <= code < 0x110000
    )


def measured(text_page: pypdfium2.PdfTextPage, characters: Characters) -> list[PageLine]:
    """The line of these characters; none if all are spaces."""
    seen = [place for place, each in characters if not each.isspace() and each != SOFT_HYPHEN]
    if not seen:
        return []
    text = " ".join("".join(each for _, each in characters).translate(LIGATURES).split())
    size, is_bold = sorted(font(text_page, seen[number * (len(seen) - 1) // 4]) for number in range(5))[2]
    breaks = (number for number, (place, each) in enumerate(characters) if place > seen[0] and each.isspace())
    word_end = characters[next(breaks, len(characters)) - 1][0]
    left, x, base = edges(text_page, seen[0])[0], c_double(), c_double()
    raw.FPDFText_GetCharOrigin(text_page, seen[0], byref(x), byref(base))
    right, word = edges(text_page, seen[-1])[1], edges(text_page, word_end)[1] - left
    placed = {"left": left, "right": right, "base": base.value, "word": word, "size": size}
    return [
        {
            "text": text,
            "is_bold": is_bold,
            **{name: value if isfinite(value) else 0.0 for name, value in placed.items()},
        }
    ]


def edges(text_page: pypdfium2.PdfTextPage, place: int) -> tuple[float, float]:
    """Where a character begins and ends, in points from the left."""
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    raw.FPDFText_GetCharBox(text_page, place, byref(left), byref(right), byref(bottom), byref(top))
    return left.value, right.value


def font(text_page: pypdfium2.PdfTextPage, place: int) -> tuple[float, bool]:
    """Size of a character's font on the page, in points, and whether it is a bold one."""
    matrix, name, flags = raw.FS_MATRIX(), create_string_buffer(128), c_int()
    raw.FPDFText_GetMatrix(text_page, place, byref(matrix))
    raw.FPDFText_GetFontInfo(text_page, place, name, len(name), byref(flags))
    size = raw.FPDFText_GetFontSize(text_page, place) * hypot(matrix.c, matrix.d)
    return min(max(round(size, 1), SIZES[0]), SIZES[1]), b"bold" in name.value.lower()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
