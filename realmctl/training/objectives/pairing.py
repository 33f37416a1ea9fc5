"""For each sentence, the block that restates most of it: reading practice without labels.

A reader learns to copy from a block only where the block repeats what the sentence hides. The partner of a sentence is the
block, other than its own, that shares the largest sum of inverse document frequencies with it. Wordpieces in more than a
share of `MOST_COMMON` of the blocks are skipped, because they carry little information and take the most time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.log import progress
from realmctl.retrieval.corpus import Corpus
from realmctl.retrieval.tagged_queries import TaggedQueries

MOST_COMMON = 0.1
"""A wordpiece in more than this share of the blocks is skipped.

The value is this project's choice; if it changes, the version of `mlm-init` must increase.
"""
LONGEST_POSTING = 20_000
"""A wordpiece in more than this number of blocks is skipped.

The value is this project's choice; if it changes, the version of `mlm-init` must increase.
"""


def partners(queries: TaggedQueries, corpus: Corpus) -> NDArray[np.int64]:
    """Row of each sentence's partner, int64 [sentences]; -1 where no block shares a wordpiece that is not skipped."""
    postings = _Postings(corpus)
    best = np.full(len(queries), -1, dtype=np.int64)
    with progress(len(queries), "pairing sentences with blocks", "sentences") as bar:
        for row in range(len(queries)):
            best[row] = postings.best(np.unique(queries.tokens(row)), queries.uid[row])
            bar.advance()
    return best


class _Postings:
    """For each wordpiece, the blocks that hold it."""

    def __init__(self, corpus: Corpus) -> None:
        uid = np.asarray(corpus.uid)
        self.row_by_uid = np.argsort(uid, kind="stable")
        self.sorted_uid = uid[self.row_by_uid]
        held = [np.unique(np.concatenate([corpus.title(row), corpus.tokens(row)])) for row in range(len(corpus))]
        blocks = np.repeat(np.arange(len(corpus)), [len(tokens) for tokens in held])
        tokens = np.concatenate(held).astype(np.int64)
        order = np.argsort(tokens, kind="stable")
        self.blocks, counts = blocks[order], np.bincount(tokens)
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.idf = np.log((len(corpus) + 1) / (counts + 0.5))
        self.most = min(LONGEST_POSTING, max(2, int(MOST_COMMON * len(corpus))))

    def best(self, tokens: NDArray[np.int64], own_uid: np.uint64) -> int:
        """The block with the largest shared sum of idf that is not the sentence's own, the first of equals; -1 for none."""
        known = tokens[tokens < len(self.idf)]
        count = self.starts[known + 1] - self.starts[known]
        used = (count > 0) & (count <= self.most)
        if not used.any():
            return -1
        lists = [self.blocks[self.starts[token] : self.starts[token + 1]] for token in known[used]]
        weights = np.repeat(self.idf[known[used]], count[used])
        score = np.bincount(np.concatenate(lists), weights, minlength=len(self.sorted_uid))
        first, stop = (np.searchsorted(self.sorted_uid, own_uid, side) for side in ("left", "right"))
        score[self.row_by_uid[first:stop]] = -1.0
        best = int(score.argmax())
        return best if score[best] > 0 else -1
