"""The cutter `sliding` of `chunk --cutter`: blocks that overlap by half."""

from __future__ import annotations

from collections.abc import Iterator

from realmctl.corpus.blocks import BlockPacker, Sentence
from realmctl.corpus.document import Document


class SlidingWindow(BlockPacker):
    """Each block begins with the second half of the sentences of the one before it."""

    def groups(self, document: Document, room: int) -> Iterator[list[Sentence]]:
        window = list[Sentence]()
        for together in self.together(document, room):
            if window and self._length([*window, *together]) > room:
                yield window
                window = window[(len(window) + 1) // 2 :]
            while window and self._length([*window, *together]) > room:
                window = window[1:]
            window = [*window, *together]
        if window:
            yield window

    @staticmethod
    def _length(sentences: list[Sentence]) -> int:
        return sum(sentence.length for sentence in sentences)
