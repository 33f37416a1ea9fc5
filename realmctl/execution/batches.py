"""Rows in batches."""

from __future__ import annotations

from typing import Protocol, Self, TypeVar


class Rows(Protocol):
    """A list, an array, or another sequence whose slices are of its own type."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Self: ...


R = TypeVar("R", bound=Rows)


def batched(rows: R, size: int) -> list[R]:
    """Return the rows in batches of `size`, of which the last may be smaller. 0 means one batch of all."""
    return [rows[part] for part in slices(len(rows), size)]


def slices(count: int, size: int) -> list[slice]:
    """Return the places of `batched`, for several lists of `count` rows."""
    size = size or max(1, count)
    return [slice(start, start + size) for start in range(0, count, size)]
