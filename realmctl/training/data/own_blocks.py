"""Which blocks are of one document, and which are no candidates for a sentence: the one that holds it, or all of its document's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus
from realmctl.training.settings.start import ExcludeOwn, GroupBy


class OwnBlocks:
    """The blocks to exclude, by the uid of the block that holds the sentence.

    With a kind of document every block is read once.
    """

    def __init__(self, corpus: Corpus, kind: ExcludeOwn) -> None:
        self.kind = kind
        if kind == "block" or kind == "nothing":
            return
        self._rows = rows_by_document(corpus, kind)
        self._corpus, self._document = corpus, np.empty(len(corpus), dtype=np.int64)
        for number, rows in enumerate(self._rows):
            self._document[rows] = number

    def excluded(self, own_uid_B: NDArray[np.uint64]) -> Sequence[NDArray[np.uint64]] | None:
        """The uids that are no candidates for each query; None where all blocks are.

        own_uid_B: uid of the block that holds each query's sentence. A block that stands in several documents excludes the blocks of each.
        """
        if self.kind == "nothing":
            return None
        if self.kind == "block":
            return [*own_uid_B[:, None]]
        return [np.append(self._corpus.uid[self._of_documents(uid)], uid) for uid in own_uid_B]

    def _of_documents(self, uid: np.uint64) -> NDArray[np.int64]:
        """Rows of the blocks of all documents that hold a block with this uid."""
        numbers = np.unique(self._document[self._corpus.rows_of(uid)]).tolist()
        return np.concatenate([np.empty(0, dtype=np.int64), *(self._rows[number] for number in numbers)])


PART = re.compile(r"[#_:/.|-][0-9]+$")
"""What the id of a passage adds to that of its source: `ls#3`, `630-0`."""


def rows_by_document(corpus: Corpus, group_by: GroupBy = "document") -> list[NDArray[np.int64]]:
    """Return the rows of each document's blocks, in the order of the corpus.

    group_by: what blocks of one document have in common; see `GroupBy`. A block without a title is of a document of its own.
    """
    found: dict[str, list[int]] = {}
    for row, block in enumerate(corpus):
        keys = {"document": block.document, "title": block.title, "source": PART.sub("", block.document)}
        found.setdefault(keys[group_by] or f"block {row}", []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in found.values()]
