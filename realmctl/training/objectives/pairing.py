"""For each sentence, the blocks that restate most of it: reading practice without labels.

A reader learns to copy from a block only where the block repeats what the sentence hides. The partners of a sentence are
the blocks, other than its own, that share the largest sums of inverse document frequencies with it. Wordpieces in more
than a share of `MOST_COMMON` of the blocks are skipped, because they carry little information and take the most time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus
from realmctl.log import progress
from realmctl.spans.tagged_queries import TaggedQueries

MOST_COMMON = 0.1
"""A wordpiece in more than this share of the blocks is skipped.

The value is this project's choice; if it changes, the version of `mlm-init` must increase.
"""
LONGEST_POSTING = 20_000
"""A wordpiece in more than this number of blocks is skipped.

The value is this project's choice; if it changes, the version of `mlm-init` must increase.
"""


def partners(queries: TaggedQueries, corpus: Corpus, count: int = 1) -> NDArray[np.int64]:
    """Rows of each sentence's partners, int64 [sentences, count], the best first.

    Places behind the last block that shares a wordpiece that is not skipped hold -1. Among equals the smaller row comes first.
    """
    postings = _Postings(corpus)
    best = np.full((len(queries), count), -1, dtype=np.int64)
    with progress(len(queries), "pairing sentences with blocks", "sentences") as bar:
        for row in range(len(queries)):
            found = postings.best(np.unique(queries.tokens(row)), queries.uid[row], count)
            best[row, : len(found)] = found
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

    def best(self, tokens: NDArray[np.int64], own_uid: np.uint64, count: int) -> NDArray[np.int64]:
        """At most `count` rows by falling shared sum of idf, without the sentence's own block; equals by rising row."""
        known = tokens[tokens < len(self.idf)]
        lengths = self.starts[known + 1] - self.starts[known]
        used = (lengths > 0) & (lengths <= self.most)
        if not used.any():
            return np.empty(0, dtype=np.int64)
        lists = [self.blocks[self.starts[token] : self.starts[token + 1]] for token in known[used]]
        weights = np.repeat(self.idf[known[used]], lengths[used])
        score = np.bincount(np.concatenate(lists), weights, minlength=len(self.sorted_uid))
        first, stop = (np.searchsorted(self.sorted_uid, own_uid, side) for side in ("left", "right"))
        score[self.row_by_uid[first:stop]] = 0.0
        if count == 1:
            return np.array([score.argmax()]) if score.any() else np.empty(0, dtype=np.int64)
        rows = np.flatnonzero(score)
        best: NDArray[np.int64] = rows[np.argsort(-score[rows], kind="stable")[:count]]
        return best
