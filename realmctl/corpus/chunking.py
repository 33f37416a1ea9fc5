"""Turn documents into blocks, a unit at a time. Each worker of `chunk` does this.

The result of a unit depends only on the unit and the settings, so it is the same for any number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from realmctl.corpus.blocks import Block, BlockPacker, LongSentencePolicy, LongTitlePolicy
from realmctl.corpus.document import Document, SkippedPage, cleaned
from realmctl.corpus.sentences import splitter
from realmctl.corpus.work_units import CorpusUnit, Pages, ReadFiles
from realmctl.tokens import wordpiece


@dataclass
class ChunkedUnit:
    """The blocks of a unit, its skipped pages, and counts. `read`: what was found in files that the worker read.

    `counts` has documents, sentences, words, anchors, split_sentences, no_prose and quarantined.
    """

    blocks: list[Block] = field(default_factory=list)
    quarantined: list[SkippedPage] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    read: ReadFiles | None = None

    def add(self, source: Document, blocks: list[Block]) -> None:
        """Add the blocks of one document. A document without blocks counts as no_prose."""
        if not blocks:
            self.counts["no_prose"] += 1
            return
        self.blocks += blocks
        self.counts["documents"] += 1
        self.counts["words"] += source.text.count(" ") + source.text.count("\n") + 1
        self.counts["sentences"] += sum(len(block.sentences) for block in blocks)
        self.counts["anchors"] += sum(len(block.anchors) for block in blocks)


@dataclass(frozen=True)
class ChunkingSettings:
    """How to chunk. A worker builds its own packer from these settings, because the packer cannot be sent to a
    process.
    """

    tokenizer: Path
    splitter: str
    max_wordpieces: int
    long_sentences: LongSentencePolicy
    page_seconds: float
    long_titles: LongTitlePolicy = "cut"
    keep_passages: bool = False


_packer: BlockPacker
_setup: ChunkingSettings


def prepare(setup: ChunkingSettings) -> None:
    """Build the packer of this process. `map_units` calls this once in each worker."""
    global _packer, _setup
    _setup = setup
    _packer = BlockPacker(
        wordpiece.load(setup.tokenizer),
        splitter(setup.splitter),
        setup.max_wordpieces,
        setup.long_sentences,
        setup.long_titles,
        keep_passages=setup.keep_passages,
    )


def chunk_unit(unit: CorpusUnit) -> ChunkedUnit:
    """Return the blocks of a unit, made by the packer that `prepare` built."""
    chunked = ChunkedUnit()
    split, shortened = _packer.split_sentences, _packer.shortened_passages
    if isinstance(unit, list):
        pages: Iterable[Document | SkippedPage] = unit
    else:
        chunked.read = ReadFiles()
        pages = chunked.read.pages(unit)
    for page in pages:
        found = cleaned(page, _setup.page_seconds)
        if isinstance(found, SkippedPage):
            chunked.quarantined.append(found)
        else:
            chunked.add(found, list(_packer.blocks(found)))
    chunked.counts["quarantined"] = len(chunked.quarantined)
    chunked.counts["split_sentences"] = _packer.split_sentences - split
    if _setup.keep_passages:
        chunked.counts["shortened_passages"] = _packer.shortened_passages - shortened
    return chunked


def texts_of(unit: Pages) -> list[str]:
    """Return the titles and texts of a unit, for training a tokenizer."""
    found = [page for page in map(cleaned, unit) if isinstance(page, Document)]
    return [text for document in found for text in (document.title, document.text)]
