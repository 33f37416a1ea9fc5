"""Import published block records as our blocks.

Texts and titles are kept as they are. Sentences are split and wordpieces computed here. The result of a unit depends only
on the unit and the tokenizer, so every worker gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from realmctl.artifacts import Artifact, Writer
from realmctl.artifacts.description import BLOCKS, BlocksDescription, write_description
from realmctl.corpus.blocks import Block, PackedWordpieces
from realmctl.corpus.blocks_file import BlocksWriter
from realmctl.corpus.sentences import split
from realmctl.errors import MismatchError
from realmctl.execution.shards import map_units
from realmctl.extras.hub.imports.block_records import read_records
from realmctl.imports.imported import make_imported
from realmctl.inputs import streams
from realmctl.log import progress
from realmctl.tokens.tokenizer import Tokenizer

BLOCKS_PER_UNIT = 512


def import_blocks(records: Path, titles: Path | None, tokenizer: tuple[Path, ...], out: Path, workers: int) -> Artifact:
    """Import block records, with their titles if a file of titles is passed, as `out/blocks`.

    Args:
        records: block_records.npy.
        titles: A text file with the title of one block on each line.
        tokenizer: The files of the tokenizer.
        out: Folder of the series `blocks`.
        workers: Processes; 0 for one for each core.

    Raises:
        InputError: The records are damaged or hold something other than texts.
        MismatchError: There are more or fewer titles than blocks.
    """
    read_records(records)
    folder = tokenizer[0].parent

    def write(out: Writer) -> Mapping[str, object]:
        words = Tokenizer.load(folder)
        words.save(out.path / "tokenizer")
        count, texts = read_records(records)
        given = published_blocks(texts, titles, count)
        units = iter(lambda: list(islice(given, BLOCKS_PER_UNIT)), [])
        with BlocksWriter(out.file, words.dtype) as writer, progress(count, "importing", "blocks") as bar:
            for blocks in map_units(blocks_of, units, workers, initializer=prepare, initargs=(folder,)):
                for block in blocks:
                    writer.write(block)
                bar.advance(len(blocks))
        write_description(out.file(BLOCKS), BlocksDescription(titles=titles is not None))
        return {"blocks": count}

    return make_imported(
        out / "blocks", "blocks", write, sources={"records": records, "titles": titles, "tokenizer": tokenizer}
    )


class PublishedBlock(NamedTuple):
    """A published block: the number of its document, its number within the document, title and text."""

    document: int
    number: int
    title: str
    text: str


def published_blocks(records: Iterable[str], titles: Path | None, count: int) -> Iterator[PublishedBlock]:
    """Yield records with their titles. Neighbours with the same title form a document; without titles each block does.

    titles: a text file with one line for each block. Raises MismatchError when it does not have `count` lines.
    """
    if titles is None:
        yield from (PublishedBlock(row, 0, "", text) for row, text in enumerate(records))
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
        yield PublishedBlock(document, number, title, text)


_wordpiece: Tokenizer


def prepare(tokenizer: Path) -> None:
    """Load the tokenizer for this process. `map_units` calls it once in each worker."""
    global _wordpiece
    _wordpiece = Tokenizer.load(tokenizer)


def blocks_of(unit: Sequence[PublishedBlock]) -> list[Block]:
    """Return our blocks of a unit, with the tokenizer of `prepare`. Texts are never cut or changed."""
    return [_block(published) for published in unit]


def _block(published: PublishedBlock) -> Block:
    text, size = published.text, _wordpiece.itemsize
    found = [(span, _wordpiece.packed(text[span[0] : span[1]])) for span in split(text)]
    sentences = [(span, packed) for span, packed in found if packed] or [((0, len(text)), _wordpiece.packed(text))]
    return Block(
        id=f"{published.document}-{published.number}",
        document=str(published.document),
        title=published.title,
        text=text,
        sentences=tuple(span for span, _ in sentences),
        anchors=(),
        wordpieces=PackedWordpieces(
            title=_wordpiece.packed(published.title),
            body=b"".join(packed for _, packed in sentences),
            sentence_starts=[0, *accumulate(len(packed) // size for _, packed in sentences[:-1])],
        ),
    )
