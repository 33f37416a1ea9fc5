"""A document, from the reader of its format to the blocks that it is cut into."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from realmctl.corpus.fields import Fields
from realmctl.corpus.signs import SIGN, UNSEEN
from realmctl.corpus.wrapped import unwrapped
from realmctl.execution.deadline import DeadlineError, deadline

PAGE_SECONDS = 10.0
"""CPU time in which a page is cleaned. A page takes milliseconds; one that takes so long was made to, or has hit a fault."""

CharacterRange = tuple[int, int]
"""Where something begins and ends (exclusive) in a text, in characters."""
Link = tuple[int, int, str]
"""A link: where its label begins and ends (exclusive) in the text, in characters, and the title of the page it points to."""


class Lead(NamedTuple):
    """A line that leads the text behind it, in characters: a heading its section, a term its definition, the names of columns the rows of a table.

    start, end: where the line begins and ends (exclusive). until: where the text that it leads ends, behind `end`. is_heading: whether this is a section.
    """

    start: int
    end: int
    until: int
    is_heading: bool = True


@dataclass(frozen=True, slots=True)
class Document:
    """A document. Its text has one paragraph or list item a line.

    Attributes:
        id: its id, which is unique in a corpus. Block ids contain it.
        title: its title, which may be empty.
        text: its text.
        links: the links of the text, in order.
        clean: turns a text with markup into prose and its links. None: the text is prose.
        has_lines: whether a line end of the text says something, as between the items of a list. Then blocks keep it, and
            divide no line that fits into one.
        fields: what it says of itself beside title and text, by name in lower case; `fields.kept` makes them.
        pages: where each page of a PDF begins in the text, in characters, with its number, in order.
        leads: its headings, terms and names of columns, in order. What they lead lies apart, or one in another. A block does not end with one.
        passages: the texts that it is cut into already, in order, where its file says so. `chunk --keep-passages` makes a block of each.
        where: its file and place there, for messages.
        lost: how much of the file's text its reader could not take, for a warning; empty if nothing.
    """

    id: str
    title: str
    text: str
    links: tuple[Link, ...] = ()
    clean: Callable[[Document], Document] | None = field(default=None, compare=False)
    has_lines: bool = field(default=False, compare=False)
    leads: tuple[Lead, ...] = field(default=(), compare=False)
    fields: Fields = field(default_factory=dict, compare=False)
    pages: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    passages: tuple[str, ...] = field(default=(), compare=False)
    where: str = field(default="", compare=False)
    lost: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SkippedPage:
    """A page that is set aside, with the reason: its text is too long, or cleaning it took too long.

    is_file: whether it is a whole file, which cannot be read.
    """

    id: str
    title: str
    reason: str
    where: str = field(default="", compare=False)
    is_file: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A page that is no article, such as a redirect. Its reason is counted."""

    id: str
    reason: str


Found = Document | SkippedPage | Dropped
"""What the reader of a format yields for each page of a file."""


def cleaned(page: Document | SkippedPage) -> Document | SkippedPage:
    """Return a document as prose without characters that show nothing, or why it is set aside: `clean` took more CPU time than `PAGE_SECONDS`, or the
    reader said so.
    """
    if isinstance(page, SkippedPage):
        return page
    if page.clean is None:
        return without_signs(page if page.links else _with_text(page, _as_paragraphs(page)))
    try:
        with deadline(PAGE_SECONDS):
            return without_signs(page.clean(page))
    except DeadlineError:
        return SkippedPage(page.id, page.title, f"not cleaned within {PAGE_SECONDS:g} s", page.where)


def _as_paragraphs(document: Document) -> str:
    """The text with plain line ends. Where nothing else is known of its lines, those of a wrapped text become paragraphs."""
    text = document.text.replace("\r\n", "\n")
    return text if document.has_lines or document.leads or document.passages else unwrapped(text)


def _with_text(document: Document, text: str) -> Document:
    return document if text == document.text else replace(document, text=text)


def without_signs(document: Document) -> Document:
    """A document whose title and text have no such character. Its links and leads keep their words."""
    if document.text.isascii() and document.title.isascii():
        return document
    if not SIGN.search(document.text) and not SIGN.search(document.title):
        return document
    places = [found.start() for found in UNSEEN.finditer(document.text)]

    def moved(place: int) -> int:
        return place - bisect_left(places, place)

    return replace(
        document,
        title=UNSEEN.sub("", document.title),
        text=UNSEEN.sub("", document.text),
        links=tuple((moved(start), moved(end), target) for start, end, target in document.links),
        leads=tuple(
            each._replace(start=moved(each.start), end=moved(each.end), until=moved(each.until))
            for each in document.leads
        ),
        pages=tuple((moved(start), page) for start, page in document.pages),
        passages=tuple(UNSEEN.sub("", passage) for passage in document.passages),
    )
