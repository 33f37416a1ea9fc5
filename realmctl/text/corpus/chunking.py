"""Turn raw documents into blocks, a unit at a time. Each worker of `chunk` does this.

The result of a unit depends only on the unit and the settings, so it is the same for any number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from realmctl.text import streams
from realmctl.text.columnar import rows
from realmctl.text.corpus.blocks import Block, BlockPacker, LongSentencePolicy, LongTitlePolicy
from realmctl.text.corpus.detect_format import FormatName, format_of
from realmctl.text.corpus.documents import CorpusFiles, Document, SkippedPage, document
from realmctl.text.corpus.formats import KNOWN_NAMES, FieldNames, PageCounts, RawDocument
from realmctl.text.tokens import wordpiece
from realmctl.text.tokens.sentences import splitter

DOCUMENTS_PER_UNIT = 64
CHARS_PER_UNIT = 2**20
WHOLE_FILE_BYTES = 2**22
"""A file of a folder that is at most so large, and not compressed, is read by a worker."""
EXPANSION = {streams.GZIP: 3, streams.BZIP2: 4, streams.ZSTD: 3, streams.XZ: 4, rows.PARQUET: 2}


@dataclass(frozen=True)
class WholeFiles:
    """A unit of files that a worker reads itself."""

    paths: tuple[Path, ...]
    keep_lists: bool
    format_name: FormatName
    names: FieldNames = KNOWN_NAMES


CorpusUnit = list[RawDocument] | WholeFiles


@dataclass
class ReadFiles:
    """What a worker found in whole files: the format of each, the ids of its documents with their places, and page counts."""

    formats: list[tuple[Path, str]] = field(default_factory=list)
    ids: list[tuple[str, str]] = field(default_factory=list)
    counts: PageCounts = field(default_factory=PageCounts)

    def documents(self, unit: WholeFiles) -> Iterator[RawDocument]:
        """Yield the documents of the files, and note what was found."""
        for path in unit.paths:
            kind = format_of(path, unit.format_name, unit.names)
            self.formats.append((path, kind.name))
            for raw in kind.read(path, self.counts, unit.keep_lists):
                self.ids.append((raw.id, raw.where))
                yield raw

    def add_to(self, corpus: CorpusFiles) -> None:
        """Add it to the corpus. Raises InputError for an id that came before."""
        for path, name in self.formats:
            corpus.say_format(path, name)
        for identity, where in self.ids:
            corpus.note(identity, where)
        corpus.counts.pages += self.counts.pages
        corpus.counts.dropped.update(self.counts.dropped)


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
        wordpiece.load(setup.tokenizer), splitter(setup.splitter), setup.max_wordpieces, setup.long_sentences,
        setup.long_titles, keep_passages=setup.keep_passages,
    )  # fmt: skip


def chunk_unit(unit: CorpusUnit) -> ChunkedUnit:
    """Return the blocks of a unit, made by the packer that `prepare` built."""
    chunked = ChunkedUnit()
    split, shortened = _packer.split_sentences, _packer.shortened_passages
    for raw in _documents(unit, chunked):
        page = document(raw, _setup.page_seconds)
        if isinstance(page, SkippedPage):
            chunked.quarantined.append(page)
        else:
            chunked.add(page, list(_packer.blocks(page)))
    chunked.counts["quarantined"] = len(chunked.quarantined)
    chunked.counts["split_sentences"] = _packer.split_sentences - split
    if _setup.keep_passages:
        chunked.counts["shortened_passages"] = _packer.shortened_passages - shortened
    return chunked


def _documents(unit: CorpusUnit, chunked: ChunkedUnit) -> Iterable[RawDocument]:
    if isinstance(unit, list):
        return unit
    chunked.read = ReadFiles()
    return chunked.read.documents(unit)


def texts_of(unit: list[RawDocument]) -> list[str]:
    """Return the titles and texts of a unit, for training a tokenizer."""
    pages = [document(raw) for raw in unit]
    return [text for page in pages if isinstance(page, Document) for text in (page.title, page.text)]


def units(raws: Iterable[RawDocument]) -> Iterator[list[RawDocument]]:
    """Group raw documents into units of about 1 MiB and at most 64 documents."""
    unit, size = list[RawDocument](), 0
    for raw in raws:
        unit.append(raw)
        size += len(raw.text)
        if len(unit) == DOCUMENTS_PER_UNIT or size >= CHARS_PER_UNIT:
            yield unit
            unit, size = [], 0
    if unit:
        yield unit


def corpus_units(corpus: CorpusFiles) -> Iterator[CorpusUnit]:
    """Yield the units of a corpus in order: documents, and small files of folders, about 1 MiB of them at a time.

    The caller adds what the workers found in the files (`ReadFiles.add_to`) and calls `corpus.finish`.
    """
    for whole, group in groupby(corpus.files(), lambda found: found[1] and _is_whole(found[0])):
        files = (file for file, _ in group)
        if whole:
            yield from _whole_files(files, corpus)
        else:
            yield from units(raw for file in files for raw in corpus.read(file))


def _is_whole(file: Path) -> bool:
    return file.stat().st_size <= WHOLE_FILE_BYTES and _expansion(file) == 1


def _whole_files(files: Iterable[Path], corpus: CorpusFiles) -> Iterator[WholeFiles]:
    together, size = list[Path](), 0
    for file in files:
        together.append(file)
        size += file.stat().st_size
        if size >= CHARS_PER_UNIT:
            yield WholeFiles(tuple(together), corpus.keep_lists, corpus.format_name, corpus.names)
            together, size = [], 0
    if together:
        yield WholeFiles(tuple(together), corpus.keep_lists, corpus.format_name, corpus.names)


def expanded_bytes(path: Path) -> int:
    """Estimate how much text a file or folder holds, from its size and its compression."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size * _expansion(file) for file in files)


def _expansion(file: Path) -> int:
    with file.open("rb") as stream:
        start = stream.read(6)
    return next((factor for magic, factor in EXPANSION.items() if start.startswith(magic)), 1)
