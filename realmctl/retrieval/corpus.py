"""A blocks artifact as training sees it: memory-mapped wordpieces, and the records for people to read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.errors import InputError
from realmctl.storage.records import Records

TokenIds = NDArray[np.integer[Any]]
RECORDS_REMEMBERED = 8192


class Ragged:
    """Rows of different lengths laid end to end: `values[offsets[i]:offsets[i+1]]` is row i. Both memory-mapped."""

    def __init__(self, artifact: Artifact, values: str, offsets: str) -> None:
        self.values, self.offsets = load_array(artifact, values), load_array(artifact, offsets)
        if self.offsets.ndim != 1 or len(self.offsets) == 0 or int(self.offsets[-1]) != len(self.values):
            raise InputError(f"{artifact}: {offsets} does not describe {values}. Make it again.")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> TokenIds:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Length of every row, int64."""
        return np.diff(self.offsets)


def load_array(artifact: Artifact, name: str) -> NDArray[Any]:
    """A `.npy` file of an artifact, memory-mapped read-only (an empty one is loaded: it cannot be mapped)."""
    path = artifact.file(name)
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        array = np.load(path, allow_pickle=False)
    return array


class Corpus:
    """Blocks by row number. Row i of the embeddings and the index is block i here."""

    def __init__(self, blocks: Artifact) -> None:
        self.artifact = blocks
        self._bodies = Ragged(blocks, "tokens.npy", "offsets.npy")
        self._titles = Ragged(blocks, "title_tokens.npy", "title_offsets.npy")
        self._sentences = Ragged(blocks, "sentence_starts.npy", "sentence_offsets.npy")
        self.uid: NDArray[np.uint64] = load_array(blocks, "uids.npy")
        if not len(self._bodies) == len(self._titles) == len(self._sentences) == len(self.uid):
            raise InputError(f"{blocks}: its arrays disagree on the number of blocks. Make it again.")
        self._remembered = lru_cache(RECORDS_REMEMBERED)(lambda row: self.records[row])

    def __len__(self) -> int:
        return len(self._bodies)

    def tokens(self, row: int) -> TokenIds:
        """Wordpieces of the body, no specials."""
        return self._bodies[row]

    def title(self, row: int) -> TokenIds:
        """Wordpieces of the title."""
        return self._titles[row]

    def sentences(self, row: int) -> TokenIds:
        """Where each sentence starts in the body, in wordpieces; the first is 0. int32."""
        return self._sentences[row]

    @property
    def sentence_offsets(self) -> NDArray[np.int64]:
        """Where each block's sentences start in the flat table: `np.diff` gives sentences per block. int64 [n + 1]."""
        return self._sentences.offsets

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Wordpieces of every body, int64 [n]."""
        return self._bodies.lengths

    @cached_property
    def records(self) -> Records:
        """Texts, titles and offsets, for people and for answers."""
        return Records(self.artifact.file("blocks.jsonl.zst"))

    def record(self, row: int) -> dict[str, Any]:
        """One block as written by `chunk`. Those asked for last are remembered: a record is read with a thousand others."""
        return self._remembered(row)

    def records_of(self, rows: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Several blocks by row, read in the order in which they lie."""
        return {row: self.record(row) for row in sorted(rows)}
