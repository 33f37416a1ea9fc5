"""Join the lines of printed pages to paragraphs, and find titles, headings and what every page repeats.

A page says where its characters stand, and not what belongs together. A line ends a paragraph if the first word of the next one would have
fitted behind it, if the next one begins further down or further right than usual, or is larger.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

HEAD_LINES = 2
"""Lines at the top and at the bottom of a page that may be its running head or foot."""
NEAR_PAGES = 2
WIDEST_STEP = 2.0
"""How far below each other the rows of columns are at most, in sizes of their font."""
LEAST_ROWS, LEAST_WORDS, GOING_ON = 3, 4, 0.5
"""Of rows that are columns of prose: their number, the words of a line of a column, and the share of lines that go on in the next one."""
MARGIN = 0.2
"""How far these stand from the edge at most, as a share of the page's height."""
LARGER = 1.12
"""A line that is so much larger than most is a heading."""
HEADING_CHARACTERS = 200
WORD = re.compile(r"[^\W\d_]{2}")
NUMBER = re.compile(r"[0-9]{1,9}")
SOFT_HYPHEN = "\u00ad"
COMPOUND = re.compile(r"\w+(?:-\w+)+")
FIRST_PART, SECOND_PART = re.compile(r"[\w-]+$"), re.compile(r"\w+")
"""Of a word that a hyphen divides at the end of a line."""
WITHOUT_SPACES = re.compile("[\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef]")
"""Characters of Chinese and Japanese, which are written without spaces."""
NEAR_LINES = 6
ROMAN = re.compile(r"[ivxlc]{1,7}")
BULLET = re.compile(r"(?:[•‣◦▪●■□\uf0a7\uf0b7\uf0d8]|[·∙*–—-]\s)\s*")
ITEM = re.compile(BULLET.pattern + r"|\(?(?:\d{1,3}|[a-z])[.)]\s|\[\d+\]\s")
ENDS = frozenset(".!?:;。！？：；")


@dataclass(frozen=True)
class Line:
    """A line of a page: its text and where it stands, in points from the page's lower left corner.

    base: Height of its baseline. size: Of its font. word: Width of its first word. is_bold: Whether its font is a bold one.
    parts: The lines between its wide gaps, if it has such.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    word: float = 0.0
    is_bold: bool = False
    parts: tuple[Line, ...] = ()


@dataclass(frozen=True)
class LaidOutPage:
    """The lines of a page in reading order, and its height in points."""

    lines: Sequence[Line]
    height: float


@dataclass(frozen=True)
class Paragraph:
    """The text of lines that belong together. heading: the size of a heading in points, in halves; 0 for another text. page: the number of the page on
    which they begin, from 1.
    """

    text: str
    heading: float = 0.0
    page: int = 0


def paragraphs(pages: Sequence[LaidOutPage]) -> Iterator[Paragraph]:
    """Yield the paragraphs of a document, without running heads, running feet and numbers of pages."""
    kept = without_running_lines(pages)
    body, pitch = body_size(kept), _pitch(kept)
    compounds = frozenset(
        found.lower() for page in kept for line in page.lines for found in COMPOUND.findall(line.text)
    )
    held, edge_before, begun = list[Line](), 0.0, 0
    for number, page in enumerate(kept, 1):
        lines = _whole_lines(page.lines)
        for line, edge in zip(lines, _right_edges(lines), strict=True):
            if held and not _continues(held, line, edge_before, pitch):
                yield _paragraph(held, body, begun, compounds)
                held = []
            begun = begun if held else number
            held.append(line)
            edge_before = edge
    if held:
        yield _paragraph(held, body, begun, compounds)


def in_columns(lines: Sequence[Line]) -> list[Line]:
    """The lines of a page, where one column of prose comes after the other also if the file holds them row by row."""
    found, place = list[Line](), 0
    while place < len(lines):
        columns, end = _columns(lines, place)
        if _are_prose(columns):
            found += (line for column in columns for line in column)
            place = end
        else:
            found.append(lines[place])
            place += 1
    return found


def _columns(lines: Sequence[Line], place: int) -> tuple[list[list[Line]], int]:
    """The columns of the rows from `place` on whose parts stand below those of the first, and the number of the first line behind them."""
    begins = [part.left for part in lines[place].parts]
    columns: list[list[Line]] = [[] for _ in begins]
    while begins and place < len(lines):
        parts = lines[place].parts or (lines[place],)
        seats = [
            next((at for at, left in enumerate(begins) if abs(part.left - left) <= part.size), None) for part in parts
        ]
        step = lines[place - 1].base - lines[place].base if columns[0] else 0.0
        if (
            None in seats
            or abs(step) > WIDEST_STEP * lines[place].size
            or any(
                seat is not None and part.right > right
                for seat, part in zip(seats, parts, strict=True)
                for right in begins[(seat or 0) + 1 : (seat or 0) + 2]
            )
        ):
            break
        for seat, part in zip(seats, parts, strict=True):
            columns[seat or 0].append(part)
        place += 1
    return columns, place


def _are_prose(columns: Sequence[Sequence[Line]]) -> bool:
    """Whether the columns of rows are prose, and not those of a table: their lines have several words, and go on in the next one."""
    if len(columns) < 2 or min(map(len, columns)) < LEAST_ROWS:
        return False
    words = [len(line.text.split()) for column in columns for line in column]
    going_on = [
        not after.text[0].isupper() and not ITEM.match(after.text) for column in columns for after in column[1:]
    ]
    return median(words) >= LEAST_WORDS and sum(going_on) >= GOING_ON * len(going_on)


def body_size(pages: Iterable[LaidOutPage]) -> float:
    """The size of most characters, in points; 0 where there are none."""
    sizes = Counter[float]()
    for page in pages:
        for line in page.lines:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=sizes.__getitem__, default=0.0)


def title_of(page: LaidOutPage, body: float) -> str:
    """The largest lines of a page that stand together, if they are larger than the body; otherwise empty."""
    largest = max((line.size for line in page.lines), default=0.0)
    if largest < LARGER * body:
        return ""
    first = next(place for place, line in enumerate(page.lines) if line.size >= 0.97 * largest)
    title = list[str]()
    for line in page.lines[first:]:
        if line.size < 0.97 * largest:
            break
        title.append(line.text)
    return joined(title)[:HEADING_CHARACTERS]


def joined(lines: Iterable[str], compounds: Collection[str] = ()) -> str:
    """Join lines to one. A soft hyphen at the end of a line goes, with the space, or becomes the hyphen of a compound; between Chinese or Japanese
    characters none stands. compounds: Those of the document, in small letters.
    """
    return _run_on(lines, compounds).removesuffix(SOFT_HYPHEN)


def _run_on(lines: Iterable[str], compounds: Collection[str] = ()) -> str:
    """What `joined` says, with the soft hyphen of the last line."""
    text = ""
    for line in lines:
        if text.endswith(SOFT_HYPHEN):
            text = text[:-1] + "-" * _is_compound(text[:-1], line, compounds) + line
        else:
            text += (" " if text and not (WITHOUT_SPACES.match(text[-1]) and WITHOUT_SPACES.match(line)) else "") + line
    return text


def _is_compound(before: str, after: str, compounds: Collection[str]) -> bool:
    """Whether a hyphen at the end of a line belongs to the word: pdfium has one character for it and for one that only divides a word.

    It belongs to a word that the document has with it elsewhere, to one that has another (state-of-the-art), that has a number, a single letter or a
    capital behind it (COVID-19, X-ray, Jean-Paul), or that begins with an abbreviation (COVID-related).
    """
    first, second = FIRST_PART.search(before), SECOND_PART.match(after)
    if first is None or second is None:
        return False
    a, b = first[0], second[0]
    if f"{a}-{b}".lower() in compounds or "-" in a or len(a) == 1 or a[-1].isdigit() or b[0].isdigit():
        return True
    return a.isupper() != b.isupper() if a.isupper() else b[0].isupper()


def without_running_lines(pages: Sequence[LaidOutPage]) -> list[LaidOutPage]:
    """Leave out what a page near it has in the same place: the same text, but that a number may count the pages. No page is left empty."""
    places = [(_outermost(page, at_top=True), _outermost(page, at_top=False)) for page in pages]
    kept = []
    for number, page in enumerate(pages):
        others = [
            *range(max(0, number - NEAR_PAGES), number),
            *range(number + 1, min(len(pages), number + 1 + NEAR_PAGES)),
        ]
        left_out = {
            place
            for side in (0, 1)
            for place, running in places[number][side].items()
            for other in others
            if any(running.is_on(other - number, there) for there in places[other][side].values())
        }
        lines = [line for place, line in enumerate(page.lines) if place not in left_out]
        kept.append(LaidOutPage(lines, page.height) if lines else page)
    return kept


@dataclass(frozen=True)
class _Running:
    """A line that may be a running one: its words, and its numbers."""

    words: str
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> _Running:
        if ROMAN.fullmatch(text):
            return cls("", ())
        return cls(NUMBER.sub("#", text), tuple(int(each) for each in NUMBER.findall(text)))

    def is_on(self, pages_later: int, other: _Running) -> bool:
        """Whether another line, so many pages later, is this one."""
        steps = {there - here for here, there in zip(self.numbers, other.numbers, strict=False)}
        return self.words == other.words and steps <= {0, pages_later}


def _outermost(page: LaidOutPage, at_top: bool) -> dict[int, _Running]:
    """{place: line} of the outermost lines of a page, at its top or its bottom."""
    order = sorted(range(len(page.lines)), key=lambda place: page.lines[place].base, reverse=at_top)[:HEAD_LINES]
    limit = MARGIN * page.height
    return {
        place: _Running.of(page.lines[place].text)
        for place in order
        if (page.height - page.lines[place].base if at_top else page.lines[place].base) <= limit
    }


def _pitch(pages: Iterable[LaidOutPage]) -> float:
    """The usual distance of a line from the one below it, in sizes of the line."""
    steps = [
        (before.base - line.base) / before.size
        for page in pages
        for before, line in zip(page.lines, page.lines[1:], strict=False)
        if before.size > 0 and 0.5 * before.size < before.base - line.base < 2.5 * before.size
    ]
    return median(steps) if steps else 1.2


def _whole_lines(lines: Iterable[Line]) -> list[Line]:
    """Join what stands side by side, such as a line, a superscript and the rest of the line. The longest part tells the size and the baseline."""
    whole = list[Line]()
    for line in lines:
        if whole and _stands_beside(whole[-1], line):
            before = whole[-1]
            longest = max(before, line, key=lambda part: len(part.text))
            text = _run_on([before.text, line.text])
            whole[-1] = replace(longest, text=text, left=before.left, right=line.right, word=before.word)
        else:
            whole.append(line)
    return whole


def _stands_beside(before: Line, line: Line) -> bool:
    return abs(before.base - line.base) < 0.6 * before.size and line.left >= before.right - before.size


def _right_edges(lines: Sequence[Line]) -> list[float]:
    """The right edge of the column of each line: of the lines near it that begin about where it does, in the same size."""
    return [
        max(
            other.right
            for other in lines[max(0, place - NEAR_LINES) : place + NEAR_LINES + 1]
            if abs(other.left - line.left) <= 4 * line.size and abs(other.size - line.size) <= 0.03 * line.size
        )
        for place, line in enumerate(lines)
    ]


def _continues(held: Sequence[Line], line: Line, edge: float, pitch: float) -> bool:
    """Whether a line continues the paragraph of the lines before it, the last of which stands in a column with this right edge."""
    before = held[-1]
    step = before.base - line.base
    if before.text.endswith(SOFT_HYPHEN):
        return True
    if not 1 / LARGER < line.size / before.size < LARGER or line.is_bold != before.is_bold or ITEM.match(line.text):
        return False
    word = line.size if WITHOUT_SPACES.match(line.text) else line.word
    if edge - before.right > word + 0.5 * before.size:
        return False
    if step <= 0 or step > 4 * before.size:  # the next column or page
        return before.text[-1] not in ENDS
    if step > 1.3 * pitch * before.size:
        return False
    is_indented = line.left - before.left > 0.8 * before.size
    return not is_indented or ITEM.match(held[0].text) is not None or before.text[-1] not in ENDS


def _paragraph(lines: Sequence[Line], body: float, page: int, compounds: Collection[str]) -> Paragraph:
    text = joined((line.text for line in lines), compounds)
    if mark := BULLET.match(text):
        text = f"- {text[mark.end() :]}"
    large = min(line.size for line in lines) >= LARGER * body
    bold = all(line.is_bold for line in lines) and len(lines) <= 2 and text[-1:] not in ENDS
    is_heading = len(text) <= HEADING_CHARACTERS and (large or bold) and WORD.search(text) is not None
    return Paragraph(text, is_heading * max(0.5, round(2 * max(line.size for line in lines)) / 2), page)
