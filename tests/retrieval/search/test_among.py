"""Some blocks alone are ranked: the best of them by every searcher, in chunks of any size."""

from __future__ import annotations

from functools import partial

import numpy as np

from realmctl.index.merged import best_among
from realmctl.retrieval.search.block_search import BlockSearch


class Plugged(BlockSearch):
    """A searcher that knows no filter, as a package of its own may have it."""

    def __init__(self, scores):
        self.scores, self.corpus = scores, range(scores.shape[1])

    def nearest(self, tokens, k):
        order = np.argsort(-self.scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(self.scores, order, 1), order


def test_a_searcher_of_a_plug_in_is_filtered_too_and_chunks_change_nothing(monkeypatch):
    scores = np.random.default_rng(0).integers(0, 9, (3, 50)).astype(np.float32)
    among = np.array([3, 4, 9, 20, 21, 33, 48])
    expected = [sorted(among.tolist(), key=lambda row: (-own[row], row))[:4] for own in scores]
    assert [rows.tolist() for _, rows in Plugged(scores).ranked([0, 1, 2], 4, among)] == expected
    for size in (1, 2, 3, 100):
        monkeypatch.setattr("realmctl.index.merged.ROWS_PER_CHUNK", size)
        found = best_among(partial(np.take, scores, axis=1), 4, among)
        assert [rows.tolist() for _, rows in found] == expected
        for (own, rows), all_ in zip(found, scores, strict=True):
            assert own.tolist() == all_[rows].tolist()
