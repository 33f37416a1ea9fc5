"""What most pages of a folder of HTML begin or end with, such as bars, breadcrumbs and feet that no class names: it is counted, and left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from realmctl.artifacts.hashing import entries_below
from realmctl.corpus.corpus_file import HTML_ENDINGS, CorpusFile
from realmctl.errors import RealmctlError
from realmctl.extras.documents import apart
from realmctl.extras.documents.charsets import html_text
from realmctl.extras.documents.leads import LedLine

SAMPLE, FEWEST = 12, 8
"""Pages that are read to count lines, evenly spaced, and the fewest pages of a folder."""
MOST_PAGES = 2 / 3
COPIES = 0.5
"""Share of repeated lines in a page above which pages are versions of one text. Then nothing is left out."""
LONGEST = 200
"""Longest line that is left out, in characters."""
MOST_TEXT = 0.5
"""Most of a page's characters that are left out at an edge."""
CELL = " | "


@dataclass(frozen=True)
class Repeated:
    """What stands on most pages: whole lines, and cells of rows."""

    lines: frozenset[str] = frozenset()
    cells: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pages: Sequence[Sequence[LedLine]]) -> Repeated:
        """Count the lines of pages."""
        lines, cells = Counter[str](), Counter[str]()
        for page in pages:
            texts = {text for text, *_ in page if len(text) <= LONGEST}
            lines.update(texts)
            cells.update({cell for text in texts if CELL in text for cell in text.split(CELL)})
        least = max(2, MOST_PAGES * len(pages))
        found = cls(*(frozenset(text for text, count in each.items() if count >= least) for each in (lines, cells)))
        shares = sorted(sum(text in found.lines for text, *_ in page) / max(1, len(page)) for page in pages)
        return found if len(pages) >= FEWEST and shares[len(shares) // 2] <= COPIES else cls()

    def without(self, lines: Sequence[LedLine], title: str) -> Sequence[LedLine]:
        """A page without the repeated lines of its two edges, up to a line of its own, but the title, or one that leads others. Behind a heading nothing is
        left out.
        """
        if not self.lines:
            return lines
        first, last = self._run(lines, title), len(lines) - self._run(lines[::-1], "")
        if first >= last or (last < len(lines) and lines[last - 1][2]):
            last = len(lines)
        if first >= last:
            return lines
        return [(text, max(0, min(until, last) - first), is_heading) for text, until, is_heading in lines[first:last]]

    def _run(self, lines: Sequence[LedLine], title: str) -> int:
        """How many lines at the begin are repeated, or parts of the title, or rows with a repeated cell before a line that is repeated."""
        found = size = 0
        most = MOST_TEXT * sum(len(text) for text, *_ in lines)
        for number, (text, until, _) in enumerate(lines):
            cells = text.split(CELL)
            known = sum(cell in self.cells for cell in cells) if len(cells) > 1 else 0
            size += len(text)
            if until or size > most or not (known or text in self.lines or text in title):
                break
            if text in self.lines or 2 * known >= len(cells):
                found = number + 1
        return found


NOTHING = Repeated()


def repeated_beside(file: CorpusFile, parser: apart.ManyParses) -> Repeated:
    """What most pages of a folder have in common: of the lowest folder around a page, within the one that was named, that has several pages."""
    name = Path(file.name).parts
    if not file.in_folder or len(name) > len(file.path.parts):
        return NOTHING
    return _of_pages(_pages_around(file.path.parent, file.path.parents[len(name) - 1]), parser)


@lru_cache(maxsize=1024)
def _pages_around(folder: Path, root: Path) -> tuple[Path, ...]:
    """The pages that are compared with those of a folder within a corpus's folder."""
    pages = _pages_below(root)
    while folder != root and len(pages.get(folder, ())) < FEWEST:
        folder = folder.parent
    found = pages.get(folder, [])
    count = min(SAMPLE, len(found))
    return tuple(found[number * len(found) // count] for number in range(count))


@lru_cache(maxsize=8)
def _pages_below(root: Path) -> dict[Path, list[Path]]:
    """The pages of HTML in and below each folder, in order."""
    pages = defaultdict[Path, list[Path]](list)
    for file, problem in entries_below(root):
        if not problem and file.suffix.lower() in HTML_ENDINGS:
            for folder in file.parents:
                pages[folder].append(file)
                if folder == root:
                    break
    return dict(pages)


@lru_cache(maxsize=256)
def _of_pages(sample: tuple[Path, ...], parser: apart.ManyParses) -> Repeated:
    pages = list[Sequence[LedLine]]()
    for file in sample:
        with suppress(RealmctlError):
            page, _ = parser.parse({"kind": "html"}, html_text(file).encode(errors="replace"))
            if page is not None and "lines" in page:
                pages.append(page["lines"])
    return Repeated.of(pages)
