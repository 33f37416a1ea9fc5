"""`--refresh-every auto`: a refresh is due when the embeddings of the blocks have drifted far enough.

Legend: C sampled blocks, D projection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.artifacts.arrays import evenly_spaced
from realmctl.models.evaluating import evaluating
from realmctl.models.retriever import Retriever
from realmctl.retrieval.embedding.embedding import embed_blocks
from realmctl.training.monitoring.index_change import drift
from realmctl.training.refresh.index_maker import IndexMaker

DUE = 0.001
"""Drift since the last snapshot at which the next one is due."""
CHECKED_EVERY = 4
"""Number of steps between two measurements of the drift."""
CHECKED_BLOCKS = 32
"""Number of blocks that are embedded for a measurement."""


class DriftWatch:
    """Watches how far the embeddings of a sample of blocks have drifted since the last snapshot.

    The drift is 1 minus the mean cosine, as `index_drift` in metrics.jsonl. It draws no random number.

    Args:
        threshold: Drift at which the next snapshot is due.
        first: Retriever of the index that training begins with.
        maker: Has the blocks, of which some are embedded, and the device and the precision.
    """

    def __init__(self, threshold: float, first: Artifact, maker: IndexMaker) -> None:
        self._threshold, self._first, self._maker = threshold, first, maker
        self._rows = evenly_spaced(len(maker.corpus), CHECKED_BLOCKS).tolist()
        self._last_CD: NDArray[np.float32] | None = None

    def start(self, newest: Artifact | None) -> None:
        """Begin or resume. `newest` is the newest snapshot, None if there is none yet."""
        self._last_CD = self._embedded(Retriever.load((newest or self._first).path).to(self._maker.device))

    def is_due(self, step: int, retriever: Retriever) -> bool:
        """Return whether a snapshot is due after `step` steps. If it is, the caller takes it."""
        if step % CHECKED_EVERY or self._last_CD is None:
            return False
        now_CD = self._embedded(retriever)
        if drift(self._last_CD, now_CD) < self._threshold:
            return False
        self._last_CD = now_CD
        return True

    def _embedded(self, retriever: Retriever) -> NDArray[np.float32]:
        maker, precision = self._maker, self._maker.request.precision
        with evaluating(retriever):
            return embed_blocks(retriever, maker.collator, maker.corpus, self._rows, precision=precision)
