"""Convert published block records into our blocks.

Texts and titles are kept as they are. Sentences are split and wordpieces computed here. The result of a unit depends only
on the unit and the tokenizer, so every worker gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import NamedTuple

from realmctl.corpus.blocks import Block
from realmctl.corpus.sentences import split
from realmctl.errors import MismatchError
from realmctl.inputs import streams
from realmctl.tokens import wordpiece
from realmctl.tokens.wordpiece import WordPiece

BLOCKS_PER_UNIT = 512


class ForeignBlock(NamedTuple):
    """A published block: the number of its document, its number within the document, title and text."""

    document: int
    number: int
    title: str
    text: str


def foreign_blocks(records: Iterable[str], titles: Path | None, count: int) -> Iterator[ForeignBlock]:
    """Yield records with their titles. Neighbours with the same title form a document; without titles each block does.

    titles: a text file with one line for each block. Raises MismatchError when it does not have `count` lines.
    """
    if titles is None:
        yield from (ForeignBlock(row, 0, "", text) for row, text in enumerate(records))
        return
    document, number, last = -1, 0, None
    lines = (line for _, line in streams.lines(titles))
    for row, (text, title) in enumerate(zip_longest(records, lines)):
        if text is None or title is None:
            held = f"only {row}" if title is None else f"more than {count}"
            raise MismatchError(
                f"{titles} has {held} lines, and there are {count} blocks: line n must be the title of block n. Name "
                "the titles that were written beside these block records."
            )
        document, number = (document, number + 1) if title == last else (document + 1, 0)
        last = title
        yield ForeignBlock(document, number, title, text)


def units(blocks: Iterable[ForeignBlock]) -> Iterator[list[ForeignBlock]]:
    """Yield the blocks in groups of BLOCKS_PER_UNIT."""
    unit = list[ForeignBlock]()
    for block in blocks:
        unit.append(block)
        if len(unit) == BLOCKS_PER_UNIT:
            yield unit
            unit = []
    if unit:
        yield unit


_wordpiece: WordPiece


def prepare(tokenizer: Path) -> None:
    """Load the tokenizer for this process. `map_units` calls it once in each worker."""
    global _wordpiece
    _wordpiece = wordpiece.load(tokenizer)


def blocks_of(unit: list[ForeignBlock]) -> list[Block]:
    """Return our blocks of a unit, with the tokenizer of `prepare`. Texts are never cut or changed."""
    return [_block(foreign) for foreign in unit]


def _block(foreign: ForeignBlock) -> Block:
    text, size = foreign.text, _wordpiece.itemsize
    found = [(span, _wordpiece.packed(text[span[0] : span[1]])) for span in split(text)]
    sentences = [(span, packed) for span, packed in found if packed] or [((0, len(text)), _wordpiece.packed(text))]
    return Block(
        id=f"{foreign.document}-{foreign.number}",
        document=str(foreign.document),
        title=foreign.title,
        text=text,
        sentences=[span for span, _ in sentences],
        anchors=[],
        ids=b"".join(packed for _, packed in sentences),
        title_ids=_wordpiece.packed(foreign.title),
        sentence_starts=[0, *accumulate(len(packed) // size for _, packed in sentences[:-1])],
    )
