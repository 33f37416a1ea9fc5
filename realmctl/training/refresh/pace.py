"""When a refresh is due: after a number of steps, or when the embeddings of the blocks have drifted far enough.

Legend: C sampled blocks, D projection.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.retrieval.embedding.embedding import embed_blocks
from realmctl.retrieval.initial_encoder import packer_of, tokenizer_of
from realmctl.retrieval.search.drift import drift, evenly_spaced

CHECKED_EVERY = 4
"""Number of steps between two measurements of the drift."""
CHECKED_BLOCKS = 32
"""Number of blocks that are embedded for a measurement."""


class Pace(Protocol):
    """Decides at which steps the trainer commits a snapshot."""

    def start(self, newest: Artifact | None) -> None:
        """Begin or resume. `newest` is the newest snapshot, None if there is none yet."""
        ...

    def is_due(self, step: int, retriever: Retriever) -> bool:
        """Return whether a snapshot is due after `step` steps. If it is, the caller takes it."""
        ...


class EverySteps:
    """A snapshot every `every` steps."""

    def __init__(self, every: int) -> None:
        self._every = every

    def start(self, newest: Artifact | None) -> None:
        pass

    def is_due(self, step: int, retriever: Retriever) -> bool:
        return step % self._every == 0


class WhenDrifted:
    """A snapshot when the embeddings of a sample of blocks have drifted by `threshold` since the last one.

    The drift is 1 minus the mean cosine, as `index_drift` in metrics.jsonl. It draws no random number.

    Args:
        threshold: The drift.
        first: Retriever of the index that training begins with.
        corpus: The blocks, of which some are embedded.
        collator: Lays out blocks in the retriever's vocabulary.
        device: Device of the retriever in training.
        precision: Arithmetic of the embedding.
    """

    def __init__(
        self, threshold: float, first: Artifact, corpus: Corpus, collator: Collator, device: str, precision: str
    ) -> None:
        self._threshold, self._first, self._corpus, self._collator = threshold, first, corpus, collator
        self._device, self._precision = pick_device(device), precision
        self._rows = evenly_spaced(len(corpus), CHECKED_BLOCKS).tolist()
        self._last_CD: NDArray[np.float32] | None = None

    def start(self, newest: Artifact | None) -> None:
        self._last_CD = self._embedded(Retriever.load((newest or self._first).path).to(self._device))

    def is_due(self, step: int, retriever: Retriever) -> bool:
        if step % CHECKED_EVERY or self._last_CD is None:
            return False
        now_CD = self._embedded(retriever)
        if drift(self._last_CD, now_CD) < self._threshold:
            return False
        self._last_CD = now_CD
        return True

    def _embedded(self, retriever: Retriever) -> NDArray[np.float32]:
        was_training = retriever.training
        found = embed_blocks(retriever.eval(), self._collator, self._corpus, self._rows, precision=self._precision)
        retriever.train(was_training)
        return found


def pace_of(
    every: int | Literal["auto"], threshold: float, first: Artifact, blocks: Artifact, device: str, precision: str
) -> Pace:
    """Return the pace of `--refresh-every`. The other arguments are those of `WhenDrifted`, with the artifact of the blocks."""
    if every != "auto":
        return EverySteps(every)
    return WhenDrifted(threshold, first, Corpus(blocks), packer_of(tokenizer_of(blocks)), device, precision)
