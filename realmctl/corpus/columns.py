"""The values of fields of all blocks in memory, each different value once: what a filter is compared with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.fields import FieldType, Value

if TYPE_CHECKING:
    from realmctl.corpus.corpus import Corpus

OF_BLOCKS: Mapping[str, FieldType] = {"document": "text", "title": "text", "section": "text", "page": "number"}
"""What every block has, where no field of documents has the name. The document of a file is its path."""


@dataclass(frozen=True)
class Column:
    """A field of all blocks.

    kind: its type. values: its different values; those of a list are tuples. numbers: which of them each block has, int32 [blocks]; -1 for none.
    """

    kind: FieldType
    values: list[str | int | float | tuple[str, ...]]
    numbers: NDArray[np.int32]

    def where(self, test: Callable[[object], bool]) -> NDArray[np.bool_]:
        """Return for which blocks a value passes, bool [blocks]. A block without a value does not."""
        return np.array([*map(test, self.values), False], dtype=bool)[self.numbers]


class Columns:
    """The fields of blocks by name, each read when it is first asked for."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, self._read = corpus, dict[str, Column]()
        self.types: Mapping[str, FieldType] = {**OF_BLOCKS, **corpus.fields.types}

    def of(self, names: Collection[str]) -> Mapping[str, Column]:
        """Return columns by name; all are names of `types`."""
        stored = self._corpus.fields
        missing = {*names} - self._read.keys()
        self._fill(found := [name for name in missing if name in stored.types], stored.all(found))
        if missing - {*found}:  # one reading of the blocks is for all that they have
            records = enumerate(self._corpus.records)
            self._fill(
                [*OF_BLOCKS.keys() - stored.types], ((row, row + 1, {"section": "", **each}) for row, each in records)
            )
        return self._read

    def _fill(self, names: list[str], records: Iterator[tuple[int, int, Mapping[str, Value]]]) -> None:
        if not names:
            return
        known = {name: dict[str | int | float | tuple[str, ...], int]() for name in names}
        numbers = {name: np.full(len(self._corpus), -1, np.int32) for name in names}
        for start, stop, record in records:
            for name in names:
                if (value := record.get(name)) is not None:
                    own = known[name]
                    key = tuple(value) if isinstance(value, list) else value
                    numbers[name][start:stop] = own.setdefault(key, len(own))
        self._read |= {name: Column(self.types[name], [*known[name]], numbers[name]) for name in names}
