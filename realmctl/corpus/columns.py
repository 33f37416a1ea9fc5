"""The values of fields of all blocks in memory, each different value once: what a filter is compared with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.fields import FieldType, Value, moment

if TYPE_CHECKING:
    from realmctl.corpus.corpus import Corpus

LONGEST_DATE = len("2024-05-01T10:30:00")
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

    @cached_property
    def places(self) -> Mapping[str | float, list[int]]:
        """{a value, or one in a list: its places in `values`}."""
        found = dict[str | float, list[int]]()
        for place, value in enumerate(self.values):
            for each in value if isinstance(value, tuple) else (value,):
                found.setdefault(each, []).append(place)
        return found

    @cached_property
    def moments(self) -> NDArray[np.bytes_]:
        """The values of a date in one form, whose order is that of time, ASCII [values]."""
        return np.array([moment(str(value))[:LONGEST_DATE].encode("ascii", "replace") for value in self.values], bytes)

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The values of a number, float64 [values]."""
        return np.array(self.values, np.float64)

    def which(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for which blocks a value is chosen, bool [blocks], from bool [values]. A block without a value is not."""
        return np.append(chosen, False)[self.numbers]

    def is_one_of(self, values: Collection[str | float]) -> NDArray[np.bool_]:
        """Return which blocks have one of these values, or one of them in their list, bool [blocks]."""
        chosen = np.zeros(len(self.values), bool)
        chosen[[place for value in values for place in self.places.get(value, ())]] = True
        return self.which(chosen)

    def where(self, test: Callable[[object], bool]) -> NDArray[np.bool_]:
        """Return for which blocks a value passes a test of each different value, bool [blocks]."""
        return self.which(np.fromiter(map(test, self.values), bool, len(self.values)))


class Columns:
    """The fields of blocks by name, each read when it is first asked for. Several threads may ask."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, self._read, self._lock = corpus, dict[str, Column](), threading.Lock()
        self.types: Mapping[str, FieldType] = {**OF_BLOCKS, **corpus.fields.types}

    def unread(self, names: Collection[str]) -> set[str]:
        """Return which of these names are not in memory yet."""
        return {*names} - self._read.keys()

    def of(self, names: Collection[str]) -> Mapping[str, Column]:
        """Return columns by name; all are names of `types`."""
        with self._lock:
            return self._of(names)

    def _of(self, names: Collection[str]) -> Mapping[str, Column]:
        stored = self._corpus.fields
        missing = self.unread(names)
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
