"""A blocks artifact, opened for training and search: memory-mapped wordpieces, and blocks with their texts."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.artifacts.arrays import Ragged, open_array
from realmctl.artifacts.records import Records
from realmctl.corpus.blocks import Block
from realmctl.corpus.columns import Columns
from realmctl.corpus.fields_file import StoredFields
from realmctl.errors import InputError

TokenIds = NDArray[np.integer[Any]]
BLOCKS_REMEMBERED = 8192
MAX_WORDPIECES = 288
"""The longest block of blocks without this setting, such as imported ones (REALM, section 4.2)."""


class Corpus(Sequence[Block]):
    """Blocks by row number: `len(blocks)`, `blocks[7].text`, `for block in blocks`. Texts stay on disk.

    Row i of the embeddings and of the index is block i here.
    """

    def __init__(self, blocks: Artifact) -> None:
        self.artifact = blocks
        self._stored = _Stored(blocks)
        self._bodies, self._titles, self._sentences = self._stored.bodies, self._stored.titles, self._stored.sentences
        self.uid: NDArray[np.uint64] = open_array(blocks.file("uids.npy"))
        if self.uid.ndim != 1 or self.uid.dtype.kind not in "iu":
            raise InputError(f"{blocks}: uids.npy is not a list of whole numbers. Make it again.")
        if not len(self._bodies) == len(self._titles) == len(self._sentences) == len(self.uid):
            raise InputError(f"{blocks}: its arrays disagree on the number of blocks. Make it again.")
        self.fields = self._stored.fields
        self._remembered = lru_cache(BLOCKS_REMEMBERED)(self._stored.block)

    def __len__(self) -> int:
        return len(self._bodies)

    def tokens(self, row: int) -> TokenIds:
        """Wordpieces of the body, without special tokens."""
        return self._bodies[row]

    def title(self, row: int) -> TokenIds:
        """Wordpieces of the title."""
        return self._titles[row]

    @property
    def max_wordpieces(self) -> int:
        """Longest block in wordpieces, as `chunk` decided."""
        return int(self.artifact.settings.get("max_wordpieces", MAX_WORDPIECES))

    def sentences(self, row: int) -> TokenIds:
        """The start of each sentence in the body, in wordpieces, int32; the first is 0."""
        return self._sentences[row]

    @property
    def sentence_offsets(self) -> NDArray[np.int64]:
        """The start of each block's sentences in the flat table, int64 [n + 1]; `np.diff` of it counts sentences per block."""
        return self._sentences.offsets

    @cached_property
    def columns(self) -> Columns:
        """The fields of all blocks, for filters."""
        return Columns(self)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Wordpieces of every body, int64 [n]."""
        return self._bodies.lengths

    def rows_of(self, uid: np.uint64) -> NDArray[np.int64]:
        """Rows of the blocks with this uid, rising, int64: several where the same text stands in several documents."""
        order, sorted_uid = self._by_uid
        first, stop = (np.searchsorted(sorted_uid, uid, side) for side in ("left", "right"))
        return order[first:stop]

    @cached_property
    def _by_uid(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        uid = np.asarray(self.uid)
        order = np.argsort(uid, kind="stable")
        return order, uid[order]

    def block(self, row: int) -> Block:
        """One block. Recent ones are kept in memory, because reading one decompresses a hundred."""
        return self._remembered(row)

    @overload
    def __getitem__(self, row: int) -> Block: ...
    @overload
    def __getitem__(self, row: slice) -> list[Block]: ...
    def __getitem__(self, row: int | slice) -> Block | list[Block]:
        """The block at a row, negative rows from the end. Raises IndexError beyond the last block."""
        if isinstance(row, slice):
            return [self.block(number) for number in range(*row.indices(len(self)))]
        return self.block(range(len(self))[row])

    def blocks(self, rows: Iterable[int]) -> dict[int, Block]:
        """Several blocks by row, read in the order in which they are stored."""
        return {row: self.block(row) for row in sorted(rows)}

    def __iter__(self) -> Iterator[Block]:
        """Every block in order, read once."""
        return (self._stored.block(row, record) for row, record in enumerate(self._stored.records))

    @property
    def records(self) -> Records:
        """What is stored of each block beside its wordpieces and its fields, in order."""
        return self._stored.records

    def lacking(self, documents: Collection[str]) -> set[str]:
        """Return which of these ids are ids of no document. The blocks are read until all are found."""
        missing = set(documents)
        for block in self if missing else ():
            missing.discard(block.document)
            if not missing:
                break
        return missing

    def __repr__(self) -> str:
        return f"<{len(self)} blocks at {self.artifact.path}>"


class _Stored:
    """The files of blocks.

    The memory of recent blocks holds it and is not held by it. A cycle would keep the file handles of a version that nobody uses.
    """

    def __init__(self, blocks: Artifact) -> None:
        self._blocks = blocks
        self.bodies = Ragged(blocks.file("tokens.npy"), blocks.file("offsets.npy"))
        self.titles = Ragged(blocks.file("title_tokens.npy"), blocks.file("title_offsets.npy"))
        self.fields = StoredFields(blocks)
        self.sentences = Ragged(blocks.file("sentence_starts.npy"), blocks.file("sentence_offsets.npy"))

    @cached_property
    def records(self) -> Records:
        records = Records(self._blocks.file("blocks.jsonl.zst"))
        if len(records) != len(self.bodies):
            raise InputError(f"{self._blocks} has {len(records)} records for {len(self.bodies)} blocks. Make it again.")
        return records

    def block(self, row: int, record: Mapping[str, Any] | None = None) -> Block:
        record = self.records[row] if record is None else record
        return Block(  # by place, which is a fifth faster than by name, for passes over millions of blocks
            record["id"],
            record["document"],
            record["title"],
            record["text"],
            tuple(map(tuple, record["sentences"])),
            tuple(map(tuple, record["anchors"])),
            _StoredWordpieces(self, row),
            record.get("section", ""),
            record.get("page", 0),
            self.fields.of(row),
        )


class _StoredWordpieces(NamedTuple):
    """The wordpieces of a block, read when they are asked for."""

    stored: _Stored
    row: int

    @property
    def title(self) -> bytes:
        return self.stored.titles[self.row].tobytes()

    @property
    def body(self) -> bytes:
        return self.stored.bodies[self.row].tobytes()

    @property
    def sentence_starts(self) -> Sequence[int]:
        starts: list[int] = self.stored.sentences[self.row].tolist()
        return starts


class BlockTexts:
    """The text of every block by row, in a memory-mapped temporary file: reading one needs no decompression and no JSON.

    For the answer search, which reads thousands of blocks per question and step.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        ends = [0]
        with tempfile.TemporaryFile() as file:
            for text in texts:
                ends.append(ends[-1] + file.write(text.encode()))
            file.write(b"\n")  # an empty file cannot be mapped
            file.flush()
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._ends = np.array(ends, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, row: int) -> str:
        return self._bytes[self._ends[row] : self._ends[row + 1]].decode()
