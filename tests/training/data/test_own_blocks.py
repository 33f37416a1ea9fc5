"""Which blocks are no candidates for a sentence."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from realmctl.training.data.own_blocks import OwnBlocks

Row = namedtuple("Row", "document title")


class Rows(list):
    """Blocks with uids, as `Corpus` has them."""

    def __init__(self, rows, uid):
        super().__init__(Row(*row) for row in rows)
        self.uid = np.array(uid, dtype=np.uint64)

    def rows_of(self, uid):
        return np.flatnonzero(self.uid == uid)


CORPUS = Rows(
    [("a-0", "A"), ("a-1", "A"), ("b-0", "B"), ("b-0", "B"), ("c-0", "A"), ("a-2", ""), ("d-0", "")],
    # Block 3 is a copy of block 0.
    [10, 11, 12, 10, 14, 15, 16],
)


@pytest.mark.parametrize(
    ("kind", "own", "expected"),
    [
        ("block", 11, {11}),
        ("document", 11, {11}),
        ("document", 12, {10, 12}),
        ("document", 10, {10, 12}),
        ("source", 11, {10, 11, 15}),
        ("title", 11, {10, 11, 14}),
        ("title", 15, {15}),
        # Its sentence is of another corpus: only copies of its block.
        ("source", 99, {99}),
    ],
)
def test_a_sentence_does_not_see_its_block_or_the_blocks_of_its_document(kind, own, expected):
    (excluded,) = OwnBlocks(CORPUS, kind).excluded(np.array([own], dtype=np.uint64))
    assert set(excluded.tolist()) == expected


def test_nothing_is_excluded_where_it_is_asked_for():
    assert OwnBlocks(CORPUS, "nothing").excluded(np.array([10], dtype=np.uint64)) is None
