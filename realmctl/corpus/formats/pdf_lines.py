"""The program that reads the lines of a PDF by pdfium, in a process of its own: a damaged file may take it down, or its memory.

It imports nothing of realmctl. The PDF comes on stdin; the limits are its arguments. A JSON object for each page goes to stdout, after one
for the file, and one with `error` if it cannot be read.
"""

import json
import sys
from contextlib import closing
from ctypes import byref, c_double, c_int, create_string_buffer
from math import hypot
from typing import Any

import pypdfium2
from pypdfium2 import raw

SOFT_HYPHEN = "\u00ad"
HYPHENS = {0x2, 0xFFFE}
"""What pdfium gives for a hyphen that divides a word at the end of a line."""
SURROGATES = range(0xD800, 0xE000)
LIGATURES = str.maketrans(dict(enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"), 0xFB00)))

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
            say(title=pdf.get_metadata_value("Title"))
            for number in range(len(pdf)):
                height, page = read_page(pdf[number])
                characters += sum(len(line["text"]) for line in page)
                lines += len(page)
                if characters > most_characters or lines > most_lines:
                    say(error=f"it has more than {most_characters:,} characters, or {most_lines:,} lines")
                    return
                say(height=height, lines=page)
    except pypdfium2.PdfiumError as error:
        say(
            error="it needs a password"
            if "password" in str(error).lower()
            else f"it is damaged: {str(error).rstrip('.')}"
        )


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def read_page(page: pypdfium2.PdfPage) -> tuple[float, list[PageLine]]:
    """The height of a page and its lines, in the order of its content."""
    with closing(page), closing(page.get_textpage()) as text_page:
        lines, line = list[PageLine](), Characters()
        for place in range(text_page.count_chars()):
            code = raw.FPDFText_GetUnicode(text_page, place)
            if code in HYPHENS:
                line.append((place, SOFT_HYPHEN))
            elif code and code not in (0xA, 0xD):
                line.append((place, "\ufffd" if code in SURROGATES else chr(code)))
            if code in HYPHENS or code in (0xA, 0xD):
                lines += measured(text_page, line)
                line = []
        return page.get_height(), [*lines, *measured(text_page, line)]


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
    return [
        {"text": text, "left": left, "right": right, "base": base.value, "size": size, "word": word, "is_bold": is_bold}
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
    return round(size, 1) or 1.0, b"bold" in name.value.lower()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
