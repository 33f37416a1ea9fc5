"""What names a block: the title of its document, and behind it the section in which the block begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from realmctl.corpus.document import Document, Lead
from realmctl.corpus.settings import ChunkSettings
from realmctl.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from realmctl.corpus.blocks import Sentence

BETWEEN = " / "
SHARE_OF_SECTION = 4
"""A section takes at most one part in so many of a block, beside the title."""
DEEPEST = 8
"""Of leads that stand one in another, so many of the innermost are named."""
LONGEST = 200
"""Characters of a lead in a name. A longer one loses its end there."""


class Names:
    """The names of a document's blocks, asked for in the order of the blocks. Each is the title and the headings around the block's first sentence that is
    none, outermost first, and the term or the names of columns that the block before it has.

    A section that is too long for its share loses its outermost headings, then the end of the last one, in wordpiece ids only.

    least_room: The wordpieces that every name leaves for the text of a block.
    """

    def __init__(self, words: Tokenizer, document: Document, settings: ChunkSettings) -> None:
        most = settings.max_wordpieces - words.frame.around_two
        self._words, self._document = words, document
        self._leads = () if settings.keep_passages else document.leads
        self._title = words.packed(document.title)
        if settings.long_titles == "cut":
            self._title = self._title[: most // 2 * words.itemsize]
        self._share = most // SHARE_OF_SECTION * words.itemsize if self._leads else 0
        self._room = most
        self.least_room = most - (len(self._title) + self._share) // words.itemsize
        self._around, self._next = list[Lead](), 0  # the leads around the last block, and which comes next
        self._ends = {lead.end for lead in self._leads}
        self._last: tuple[int, str, bytes] = -1, "", self._title

    def room(self, sentences: Sequence[Sentence]) -> int:
        """The wordpieces that a block has for its text, if it begins with these sentences."""
        return self._room - len(self.of(sentences)[1]) // self._words.itemsize

    def of(self, sentences: Sequence[Sentence]) -> tuple[str, bytes]:
        """The section of a block as it is shown, empty where there is none, and the ids of its name: of title and section."""
        if not self._leads or not sentences:
            return "", self._title
        begin = sentences[0].start
        if begin != self._last[0]:
            place = next((each.start for each in sentences if each.end not in self._ends), begin)
            path = self._path(begin, place)
            self._last = begin, BETWEEN.join(path), self._ids(path)
        return self._last[1:]

    def _path(self, begin: int, place: int) -> list[str]:
        while self._next < len(self._leads) and self._leads[self._next].start <= place:
            self._leave(self._leads[self._next].start)
            self._around.append(self._leads[self._next])
            self._next += 1
        self._leave(place)
        named = (lead for lead in self._around[-DEEPEST:] if lead.is_heading or lead.start < begin)
        texts = (self._document.text[lead.start : min(lead.end, lead.start + LONGEST)] for lead in named)
        return [text for text in texts if text not in self._document.title]

    def _leave(self, place: int) -> None:
        while self._around and self._around[-1].until <= place:
            self._around.pop()

    def _ids(self, path: Sequence[str]) -> bytes:
        most = len(self._title) + self._share
        for first in range(len(path)):
            named = self._words.packed(BETWEEN.join(filter(None, [self._document.title, *path[first:]])))
            if len(named) <= most:
                return named
        if not path:
            return self._title
        return (self._title + self._words.packed(f"{BETWEEN if self._title else ''}{path[-1]}"))[:most]
