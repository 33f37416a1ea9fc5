"""Cut documents into blocks of whole sentences, as ORQA's preprocessing does (language/orqa/preprocessing).

A block holds consecutive sentences of one document, and no sentence is in two blocks. The packer adds the next
sentence if 3 + |title| + |block so far| + |sentence| <= max_wordpieces. This sum is the length of
[CLS] title [SEP] body [SEP]; the 3 is 4 for tokenizers with two special tokens between title and body.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from typing import NamedTuple, Protocol

from realmctl.corpus.document import CharacterRange, Document, Link
from realmctl.corpus.fields import Fields
from realmctl.corpus.sections import Sections
from realmctl.corpus.sentences import splitter
from realmctl.corpus.settings import CUTTERS, ChunkSettings
from realmctl.tokens.tokenizer import Tokenizer

MARKS_OF_THE_WORD_BEFORE = frozenset(")]}.,;:!?%’”")


FEWEST_WORDS = 15
"""A block of lines has so many words where lines of its section can make them up."""


class Sentence(NamedTuple):
    """A sentence: its character offsets in the document's text, its packed wordpiece ids, and their number."""

    start: int
    end: int
    packed: bytes
    length: int


class Wordpieces(Protocol):
    """The wordpiece ids of a block as bytes (`Tokenizer.packed`), without [CLS] and [SEP]."""

    @property
    def title(self) -> bytes:
        """The ids of the title."""
        ...

    @property
    def body(self) -> bytes:
        """The ids of the text."""
        ...

    @property
    def sentence_starts(self) -> Sequence[int]:
        """Where each sentence begins in the body, in wordpieces; the first is 0."""
        ...


class PackedWordpieces(NamedTuple):
    """Wordpieces in memory."""

    title: bytes
    body: bytes
    sentence_starts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Block:
    """A block: what the cutter makes of a document, and what `Corpus` reads back from the file of blocks.

    Attributes:
        id: its id.
        document: the id of its document. The blocks of a document are consecutive.
        title: the title of its document.
        text: its text.
        sentences: where each sentence begins and ends (exclusive) in the text, in characters.
        anchors: its links: where the label begins and ends in the text, in characters, and the title of the page linked.
        wordpieces: the wordpieces of title and text. They follow from these, so that they take no part in comparisons.
        section: the headings around all of it, outermost first, with " / " between them; empty where there are none.
        page: the page of a PDF on which it begins; 0 where that is not known.
        fields: what its document says of itself beside title and text, such as a date.
    """

    id: str
    document: str
    title: str
    text: str
    sentences: tuple[CharacterRange, ...]
    anchors: tuple[Link, ...]
    wordpieces: Wordpieces = field(compare=False, repr=False)
    section: str = ""
    page: int = 0
    fields: Fields = field(default_factory=dict)

    @property
    def uid(self) -> int:
        """The first eight bytes of SHA-1(title, " <sep> ", text). Two blocks with the same title and text have the
        same uid.
        """
        return int.from_bytes(hashlib.sha1(f"{self.title} <sep> {self.text}".encode()).digest()[:8], "big")

    def sentence_texts(self) -> list[str]:
        """Return the text of each sentence."""
        return [self.text[start:end] for start, end in self.sentences]


class Cutter(ABC):
    """What cuts documents into blocks. Another one is a class in a package of its own, by its entry point or room (`realmctl.cutters`), and
    `chunk --cutter NAME`; one that only groups sentences otherwise is a subclass of `BlockPacker` with another `groups`.

    wordpiece: The tokenizer. settings: Those of `chunk`. split_sentences, shortened_passages: What was cut; the counts become metrics.
    """

    def __init__(self, wordpiece: Tokenizer, settings: ChunkSettings) -> None:
        self.wordpiece, self.settings = wordpiece, settings
        self.split_sentences = self.shortened_passages = 0

    @abstractmethod
    def blocks(self, document: Document) -> Iterator[Block]:
        """Yield the blocks of one document in order, none for one without a wordpiece."""


def cutter(wordpiece: Tokenizer, settings: ChunkSettings) -> Cutter:
    """Return the cutter that the settings name. Raises ConfigError and ResourceError as `Registry.load`."""
    return CUTTERS.load(settings.cutter, Cutter)(wordpiece, settings)


class BlockPacker(Cutter):
    """Cut documents into blocks of whole sentences.

    A title that takes more than half of the room is cut to half, in wordpiece ids only. With `long_titles="keep"` it
    stays whole, as in the official preprocessing; if it leaves no room, each sentence becomes a block.

    A sentence too long for a block is cut between words, and `split_sentences` counts it. With `long_sentences="keep"`
    it becomes a block longer than `max_wordpieces`, as in the official preprocessing.

    With `keep_passages` a document is a block with the document's own id, even one with a title alone. One whose file cuts it into passages,
    as SQuAD's does, is as many documents, with ids of their own. A passage that does not fit loses the sentences beyond the limit, and
    `shortened_passages` counts it; with `long_sentences="keep"` it stays whole.

    A heading, a term or a row of names of columns stands in the block of the text after it. If their first sentence does not fit there, it is cut as one that is too long;
    with `long_sentences="keep"`, and after headings that take more than half of the room, the heading stays behind.
    """

    def __init__(self, wordpiece: Tokenizer, settings: ChunkSettings) -> None:
        super().__init__(wordpiece, settings)
        self.splitter = splitter(settings.sentence_splitter, settings.language)

    def blocks(self, document: Document) -> Iterator[Block]:
        if self.settings.keep_passages and document.passages:
            for number, passage in enumerate(document.passages):
                yield from self.blocks(
                    Document(
                        f"{document.id}-{number}",
                        document.title,
                        passage,
                        fields=document.fields,
                        where=document.where,
                    )
                )
            return
        size, most, around = self.wordpiece.itemsize, self.settings.max_wordpieces, self.wordpiece.frame.around_two
        title_ids = self.wordpiece.packed(document.title)
        if self.settings.long_titles == "cut":
            title_ids = title_ids[: (most - around) // 2 * size]
        room = most - around - len(title_ids) // size
        groups = self.groups(document, room)
        if not self.settings.keep_passages:
            sections = Sections(document)
            for number, sentences in enumerate(groups):
                yield _block(document, f"{document.id}-{number}", sentences, title_ids, sections)
        elif (fitting := next(groups, [])) or title_ids:
            further = [sentence for group in groups for sentence in group]
            if further and self.settings.long_sentences == "split":
                self.shortened_passages += 1
                further = []
            yield _block(document, document.id, [*fitting, *further], title_ids)

    def groups(self, document: Document, room: int) -> Iterator[list[Sentence]]:
        """Yield the sentences of each block: at most `room` wordpieces, or one sentence. Where lines say something, a block of fewer than 15 words takes
        whole lines from the one before it in its section.
        """
        former, current, length = list[list[Sentence]](), list[list[Sentence]](), 0
        for together in self.together(document, room):
            further = _length(together)
            if current and length + further > room:
                _join(document, former, current, room)
                if former:
                    yield [*chain(*former)]
                former, current, length = current, [], 0
            current.append(together)
            length += further
        _join(document, former, current, room)
        yield from ([*chain(*each)] for each in (former, current) if each)

    def together(self, document: Document, room: int) -> Iterator[list[Sentence]]:
        """Yield sentences that stay in one block: each alone, or with the leads before it, or those of a line that says something."""
        ends = {lead.end for lead in document.leads}
        if not ends:
            yield from self._undivided(document, room)
            return
        headings, taken = list[Sentence](), 0
        for line in self._undivided(document, room):
            parts, first = [line], line[0]
            if headings and taken + _length(line) > room:
                if taken + first.length <= room:
                    yield [*headings, first]
                    parts = [[sentence] for sentence in line[1:]]
                elif taken <= room // 2 and self.settings.long_sentences == "split":
                    self.split_sentences += 1
                    first, *others = self._parts(document.text, first, room - taken)
                    yield [*headings, first]
                    parts = [[sentence] for sentence in (*others, *line[1:])]
                else:
                    yield headings
                headings, taken = [], 0
            for together in parts:
                if together[-1].end in ends:
                    headings += together
                    taken += _length(together)
                else:
                    yield [*headings, *together]
                    headings, taken = [], 0
        if headings:
            yield headings

    def _undivided(self, document: Document, room: int) -> Iterator[list[Sentence]]:
        """Yield the sentences one by one, and where lines say something, the sentences of each line that fits together."""
        sentences = self._sentences(document.text, room)
        if not document.has_lines:
            yield from ([sentence] for sentence in sentences)
            return
        line = list[Sentence]()
        for sentence in sentences:
            goes_on = line and "\n" not in document.text[line[-1].end : sentence.start]
            if goes_on and _length(line) + sentence.length <= room:
                line.append(sentence)
                continue
            if line:
                yield line
            line = [sentence]
        if line:
            yield line

    def _sentences(self, text: str, room: int) -> Iterator[Sentence]:
        packed, size, keep = self.wordpiece.packed, self.wordpiece.itemsize, self.settings.long_sentences == "keep"
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
        """Yield one part. A single word longer than the room is halved until it fits."""
        part = self._sentence(text, start, start + len(text[start:end].rstrip()))
        if part.length <= room or end - start < 2:
            if part.length:
                yield part
            return
        middle = (start + end) // 2
        yield from self._fitting(text, start, middle, room)
        yield from self._fitting(text, middle, end, room)


def _length(sentences: Sequence[Sentence]) -> int:
    return sum(sentence.length for sentence in sentences)


def _words(document: Document, groups: Sequence[Sequence[Sentence]]) -> int:
    return sum(len(document.text[each.start : each.end].split()) for each in chain(*groups))


def _join(document: Document, former: list[list[Sentence]], current: list[list[Sentence]], room: int) -> None:
    """Move lines from the end of a block to the begin of the next one, if that has few words and does not begin with a heading."""
    if not document.has_lines or not former:
        return
    while len(former) > 1 and _words(document, current) < FEWEST_WORDS <= _words(document, former[:-1]):
        begin = current[0][0].start
        at = bisect_left(document.leads, (begin,))
        is_section = at < len(document.leads) and document.leads[at].start == begin and document.leads[at].is_heading
        if is_section or sum(map(_length, current)) + _length(former[-1]) > room:
            return
        current.insert(0, former.pop())


def _block(
    document: Document, identity: str, sentences: Sequence[Sentence], title_ids: bytes, sections: Sections | None = None
) -> Block:
    spans, place, texts = list[CharacterRange](), 0, list[str]()
    for before, sentence in zip(_separators(document, sentences), sentences, strict=True):
        texts += before, document.text[sentence.start : sentence.end]
        place += len(before)
        spans.append((place, place := place + len(texts[-1])))
    return Block(
        id=identity,
        document=document.id,
        title=document.title,
        text="".join(texts),
        sentences=tuple(spans),
        anchors=tuple(_anchors(document.links, sentences, spans)),
        wordpieces=PackedWordpieces(
            title=title_ids,
            body=b"".join([sentence.packed for sentence in sentences]),
            sentence_starts=list(accumulate((sentence.length for sentence in sentences[:-1]), initial=0))[
                : len(sentences)
            ],
        ),
        section=sections.of(sentences) if sections else "",
        page=_page(document, sentences),
        fields=document.fields,
    )


def _page(document: Document, sentences: Sequence[Sentence]) -> int:
    """The page of a PDF on which the sentences begin, 0 where no page is known."""
    place = bisect_right(document.pages, sentences[0].start, key=itemgetter(0)) if sentences else 0
    return document.pages[place - 1][1] if place else 0


def _separators(document: Document, sentences: Sequence[Sentence]) -> list[str]:
    """What stands before each sentence of a block: a space, or a line end and how far the line is indented more than all lines of the block."""
    if not document.has_lines:
        return [" " if place else "" for place in range(len(sentences))]
    indents, former_end = list[str | None](), 0
    for sentence in sentences:
        is_line = not indents or "\n" in document.text[former_end : sentence.start]
        indents.append(_indentation(document.text, sentence.start) if is_line else None)
        former_end = sentence.end
    shared = min((len(indent) for indent in indents if indent is not None), default=0)
    return [" " if indent is None else "\n" * (place > 0) + indent[shared:] for place, indent in enumerate(indents)]


def _indentation(text: str, start: int) -> str:
    """The white space before a line that begins at `start`; empty in the middle of a line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return "" if before.strip() else before


def _anchors(links: Sequence[Link], sentences: Sequence[Sentence], spans: Sequence[CharacterRange]) -> Iterator[Link]:
    """Yield the document's links that lie inside one of these sentences, as offsets in the block's text."""
    if not sentences:
        return
    at, count = bisect_left(links, (sentences[0].start,)), len(links)
    for (first, last, _, _), (begin, _) in zip(sentences, spans, strict=True):
        shift = begin - first
        while at < count and links[at][0] < last:
            start, end, target = links[at]
            if start >= first and end <= last:
                yield start + shift, end + shift, target
            at += 1
