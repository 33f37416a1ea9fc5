"""Refuse a document id that occurs twice, in 8 bytes of memory for each document. Block ids contain document ids."""

from __future__ import annotations

import hashlib

import numpy as np

from realmctl.errors import InputError

RECENT = 2**17
"""About 300 bytes of memory each."""


class UniqueIds:
    """The ids seen so far, as 64-bit hashes: the newest in a dictionary, with their places, older ones in sorted arrays.

    A repetition of an older id is found when the newest `recent` are compared with the arrays.
    """

    def __init__(self, recent: int = RECENT) -> None:
        self._limit = recent
        self._recent: dict[int, tuple[str, str]] = {}
        self._older: list[np.ndarray] = []

    def add(self, identity: str, where: str) -> None:
        """Add an id. Raises InputError naming `where` (file:line) if the id is among the newest."""
        key = int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")
        if key in self._recent:
            raise _twice(identity, where, self._recent[key][1])
        self._recent[key] = (identity, where)
        if len(self._recent) >= self._limit:
            self.settle()

    def settle(self) -> None:
        """Compare the newest ids with all older ones. Call this after the last id too."""
        keys = np.fromiter(self._recent, np.uint64, len(self._recent))
        for older in self._older:
            places = np.minimum(np.searchsorted(older, keys), len(older) - 1)
            for key in keys[older[places] == keys]:
                raise _twice(*self._recent[int(key)], "an earlier document")
        if len(keys):
            self._older.append(np.sort(keys))
        if len(self._older) >= 16:
            self._older = [np.sort(np.concatenate(self._older), kind="stable")]  # which merges sorted runs
        self._recent.clear()


def _twice(identity: str, where: str, before: str) -> InputError:
    return InputError(
        f"{where}: the document id {identity!r} is already used by {before}. Block ids contain document ids, so each "
        f"must be unique. Change one of the ids, or leave one file out."
    )
