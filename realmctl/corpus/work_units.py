"""Divide a corpus into units of work, in order: documents that this process read, and files that workers read themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from realmctl.artifacts.hashing import entries_below
from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, SkippedPage
from realmctl.corpus.formats.detect import FORMATS, format_of
from realmctl.corpus.formats.format import Format
from realmctl.corpus.formats.wikipedia import read_dump
from realmctl.corpus.reading import CorpusFiles, PageCounts, kept
from realmctl.corpus.wiki.dump_parts import DumpPart, parts
from realmctl.inputs import rows, streams

DOCUMENTS_PER_UNIT = 64
CHARS_PER_UNIT = 2**18
WHOLE_FILE_BYTES = 2**22
"""A file of a folder that is at most so large, and not compressed, is read by a worker."""
PART_BYTES = 2**19
"""A part of a dump has at least so many bytes."""
EXPANSION = {streams.GZIP: 3, streams.BZIP2: 4, streams.ZSTD: 3, streams.XZ: 4, rows.PARQUET: 2}


@dataclass(frozen=True)
class WholeFiles:
    """A unit of files that a worker reads itself."""

    whole: tuple[CorpusFile, ...]

    def files(self) -> Iterator[tuple[CorpusFile, Format]]:
        """Yield each file with the format that reads it."""
        for file in self.whole:
            yield file, format_of(file)


@dataclass(frozen=True)
class PartOfDump:
    """A unit of pages of a dump that a worker reads itself."""

    dump: CorpusFile
    part: DumpPart

    def files(self) -> Iterator[tuple[CorpusFile, Format]]:
        """Yield the dump with the format that reads these pages."""
        yield self.dump, _dump_format(self.part)


FileUnit = WholeFiles | PartOfDump
Pages = list[Document | SkippedPage]
CorpusUnit = Pages | FileUnit


@dataclass
class ReadFiles:
    """What a worker found in files: the format of each, the ids of its documents with their places, and page counts."""

    formats: list[tuple[CorpusFile, str]] = field(default_factory=list)
    ids: list[tuple[str, str]] = field(default_factory=list)
    counts: PageCounts = field(default_factory=PageCounts)

    def pages(self, unit: FileUnit) -> Iterator[Document | SkippedPage]:
        """Yield the pages to keep of the files, and note what was found."""
        for file, kind in unit.files():
            self.formats.append((file, kind.name))
            for page in kept(file, kind, self.counts):
                if not (isinstance(page, SkippedPage) and page.is_file):
                    self.ids.append((page.id, page.where))
                yield page

    def add_to(self, corpus: CorpusFiles) -> None:
        """Add it to the corpus. Raises InputError for an id that came before."""
        for file, name in self.formats:
            corpus.say_format(file, name)
        for identity, where in self.ids:
            corpus.note(identity, where)
        corpus.counts.add(self.counts)


def units(pages: Iterable[Document | SkippedPage]) -> Iterator[Pages]:
    """Group pages into units of about 256 KiB and at most 64 pages."""
    unit, size = Pages(), 0
    for page in pages:
        unit.append(page)
        size += len(page.text) if isinstance(page, Document) else 0
        if len(unit) == DOCUMENTS_PER_UNIT or size >= CHARS_PER_UNIT:
            yield unit
            unit, size = [], 0
    if unit:
        yield unit


def corpus_units(corpus: CorpusFiles, local: bool = True) -> Iterator[CorpusUnit]:
    """Yield the units of a corpus in order: documents, small files of folders, and parts of dumps, some 256 or 512 KiB in each.

    The caller adds what the workers found in the files (`ReadFiles.add_to`) and calls `corpus.finish`.

    Args:
        corpus: the files.
        local: whether the workers run on this machine. Others may not see a file that was named, but only folders.
    """
    yield from units(corpus.bad)
    for read, group in groupby(corpus.files, lambda file: _way_to_read(file, local)):
        yield from read(group, corpus)


def _way_to_read(file: CorpusFile, local: bool) -> Callable[[Iterable[CorpusFile], CorpusFiles], Iterator[CorpusUnit]]:
    if file.in_folder and _is_whole(file.path):
        return _whole_files
    if (file.in_folder or local) and format_of(file) is FORMATS["dump"]:
        return _parts_of_dumps
    return _documents


def _documents(files: Iterable[CorpusFile], corpus: CorpusFiles) -> Iterator[CorpusUnit]:
    yield from units(page for file in files for page in corpus.read(file))


def _parts_of_dumps(files: Iterable[CorpusFile], corpus: CorpusFiles) -> Iterator[CorpusUnit]:
    for file in files:
        for part in parts(file.path, PART_BYTES):
            if part.rest:
                yield from units(corpus.read(file, _dump_format(part)))
            else:
                yield PartOfDump(file, part)


def _dump_format(part: DumpPart) -> Format:
    return replace(FORMATS["dump"], read=partial(read_dump, part=part))


def _is_whole(file: Path) -> bool:
    return file.stat().st_size <= WHOLE_FILE_BYTES and _expansion(file) == 1


def _whole_files(files: Iterable[CorpusFile], corpus: CorpusFiles) -> Iterator[WholeFiles]:
    together, size = list[CorpusFile](), 0
    for file in files:
        together.append(file)
        size += file.path.stat().st_size
        if size >= CHARS_PER_UNIT:
            yield WholeFiles(tuple(together))
            together, size = [], 0
    if together:
        yield WholeFiles(tuple(together))


def expanded_bytes(path: Path) -> int:
    """Estimate how much text a file or folder holds, from its size and its compression."""
    files = [path] if path.is_file() else [entry for entry, why in entries_below(path) if not why]
    return sum(file.stat().st_size * _expansion(file) for file in files)


def _expansion(file: Path) -> int:
    with file.open("rb") as stream:
        start = stream.read(6)
    return next((factor for magic, factor in EXPANSION.items() if start.startswith(magic)), 1)
