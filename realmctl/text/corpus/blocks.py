"""Documents into blocks: the greedy packer of ORQA's preprocessing (language/orqa/preprocessing, FIDELITY of
block sizes).

A block is whole sentences of one document, in order, none of them in two blocks. The next sentence is added
iff 3 + |title| + |block so far| + |sentence| <= max_wordpieces, which is exactly the length of [CLS] title
[SEP] body [SEP].
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from realmctl.text.corpus.documents import Document
from realmctl.text.tokens.sentences import CharacterRange, Splitter
from realmctl.text.tokens.wordpiece import WordPiece
from realmctl.text.wiki.wikitext import AnchorOffsets

SPECIALS_PER_BLOCK = 3
MARKS_OF_THE_WORD_BEFORE = frozenset(")]}.,;:!?%’”")
LongSentences = Literal["split", "keep"]
LongTitles = Literal["cut", "keep"]


class Sentence(NamedTuple):
    """Where it stands in the document's text, its wordpieces (`WordPiece.packed`), and how many they are."""

    start: int
    end: int
    packed: bytes
    length: int


@dataclass(slots=True)
class Block:
    """`sentences` and `anchors` are character offsets into `text`; `sentence_starts` counts wordpieces of the
    body.

    `ids` and `title_ids` are wordpieces as `WordPiece.packed` gives them, no specials.
    """

    id: str
    document: str
    title: str
    text: str
    sentences: list[CharacterRange]
    anchors: list[AnchorOffsets]
    ids: bytes
    title_ids: bytes
    sentence_starts: list[int]

    @property
    def uid(self) -> int:
        """First eight bytes of SHA-1(title, " <sep> ", text): what tells a passage from its own copies."""
        return int.from_bytes(hashlib.sha1(f"{self.title} <sep> {self.text}".encode()).digest()[:8], "big")

    def record(self) -> dict[str, Any]:
        """What people read: all but the ids."""
        names = ("id", "document", "title", "text", "sentences", "anchors")
        return {name: getattr(self, name) for name in names}


@dataclass
class BlockPacker:
    """Cuts documents into blocks.

    A title of more than half the room is cut to that half, in ids only, so that sentences fit beside it;
    `long_titles="keep"` keeps it, as the official preprocessing does: without room each sentence is a block. A
    sentence too long for a block is cut at word borders, counted in `split_sentences`;
    `long_sentences="keep"` gives it a block of its own that is longer than `max_wordpieces`, as the official
    preprocessing does.
    """

    wordpiece: WordPiece
    splitter: Splitter
    max_wordpieces: int = 288
    long_sentences: LongSentences = "split"
    long_titles: LongTitles = "cut"
    split_sentences: int = 0

    def blocks(self, document: Document) -> Iterator[Block]:
        """The blocks of one document, in order; none for a document without a wordpiece."""
        size = self.wordpiece.itemsize
        title_ids = self.wordpiece.packed(document.title)
        if self.long_titles == "cut":
            title_ids = title_ids[: (self.max_wordpieces - SPECIALS_PER_BLOCK) // 2 * size]
        room = self.max_wordpieces - SPECIALS_PER_BLOCK - len(title_ids) // size
        current, length, number = list[Sentence](), 0, 0
        for sentence in self._sentences(document.text, room):
            if current and length + sentence.length > room:
                yield _block(document, number, current, title_ids)
                current, length, number = [], 0, number + 1
            current.append(sentence)
            length += sentence.length
        if current:
            yield _block(document, number, current, title_ids)

    def _sentences(self, text: str, room: int) -> Iterator[Sentence]:
        packed, size, keep = self.wordpiece.packed, self.wordpiece.itemsize, self.long_sentences == "keep"
        for start, end in self.splitter(text):
            ids = packed(text[start:end])
            sentence = Sentence(start, end, ids, len(ids) // size)
            if sentence.length <= room or keep:
                if ids:
                    yield sentence
            else:
                self.split_sentences += 1
                yield from self._parts(text, sentence, room)

    def _sentence(self, text: str, start: int, end: int) -> Sentence:
        packed = self.wordpiece.packed(text[start:end])
        return Sentence(start, end, packed, len(packed) // self.wordpiece.itemsize)

    def _parts(self, text: str, sentence: Sentence, room: int) -> Iterator[Sentence]:
        """Cut a sentence into parts that fit. A part starts after a space where that is possible, and not with a
        closing bracket or another mark that belongs to the part before.
        """
        borders, length = [sentence.start], 0
        candidate, after_candidate = sentence.start, 0
        for offset, pieces in self.wordpiece.words(text[sentence.start : sentence.end]):
            start = sentence.start + offset
            if offset and text[start - 1].isspace() and text[start] not in MARKS_OF_THE_WORD_BEFORE:
                candidate, after_candidate = start, 0
            if length + pieces > room and length:
                fits = candidate > borders[-1] and after_candidate + pieces <= room
                borders.append(candidate if fits else start)
                length = after_candidate if fits else 0
            length += pieces
            after_candidate += pieces
        for start, end in pairwise([*borders, sentence.end]):
            yield from self._fitting(text, start, end, room)

    def _fitting(self, text: str, start: int, end: int, room: int) -> Iterator[Sentence]:
        """One part; a single word longer than the room is halved until it fits."""
        part = self._sentence(text, start, start + len(text[start:end].rstrip()))
        if part.length <= room or end - start < 2:
            if part.length:
                yield part
            return
        middle = (start + end) // 2
        yield from self._fitting(text, start, middle, room)
        yield from self._fitting(text, middle, end, room)


def _block(document: Document, number: int, sentences: Sequence[Sentence], title_ids: bytes) -> Block:
    spans, place = list[CharacterRange](), 0
    for sentence in sentences:
        end = place + sentence.end - sentence.start
        spans.append((place, end))
        place = end + 1
    return Block(
        id=f"{document.id}-{number}",
        document=document.id,
        title=document.title,
        text=" ".join([document.text[sentence.start : sentence.end] for sentence in sentences]),
        sentences=spans,
        anchors=list(_anchors(document.anchors, sentences, spans)),
        ids=b"".join([sentence.packed for sentence in sentences]),
        title_ids=title_ids,
        sentence_starts=[0, *accumulate(sentence.length for sentence in sentences[:-1])],
    )


def _anchors(
    anchors: Sequence[AnchorOffsets], sentences: Sequence[Sentence], spans: Sequence[CharacterRange]
) -> Iterator[AnchorOffsets]:
    """The document's anchors that lie inside one of these sentences, as offsets into the block's text."""
    at, count = bisect_left(anchors, (sentences[0].start,)), len(anchors)
    for (first, last, _, _), (begin, _) in zip(sentences, spans, strict=True):
        shift = begin - first
        while at < count and anchors[at][0] < last:
            start, end, target = anchors[at]
            if start >= first and end <= last:
                yield start + shift, end + shift, target
            at += 1
