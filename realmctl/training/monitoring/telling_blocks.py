"""Measure whether the reader's gains identify the blocks that contain the answer. REALM depends on it.

The gradient of the retriever rewards a candidate z by its gain log p(y|z,x) - log p(y|null,x) (paper, section 3.3). It
helps only if blocks that contain the hidden wordpieces have larger gains than other blocks.
Legend: B queries, N candidates without the null document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def area_under_curve(score: NDArray[np.floating], positive: NDArray[np.bool_]) -> float | None:
    """Return the probability that a positive scores higher than a negative, ties counted as half (AUC of the ROC curve).

    None when there are no positives or no negatives. Both arrays are [n].
    """
    count = int(positive.sum())
    if not 0 < count < len(positive):
        return None
    _, place, equal = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(equal) - (equal - 1) / 2)[place]  # ties share their mean rank, from 1
    above = float(rank[positive].sum()) - count * (count + 1) / 2
    return above / (count * (len(positive) - count))


class TellingBlocks:
    """Gains, retrieval scores and labels of the candidates of many queries, and statistics of them."""

    def __init__(self) -> None:
        self._gains: list[NDArray[np.float32]] = []
        self._tells: list[NDArray[np.bool_]] = []
        self._first_tells: list[bool] = []
        self._favourite_tells: list[bool] = []

    def add(
        self,
        gain_BN: NDArray[np.float32],
        score_BN: NDArray[np.float32],
        tells_BN: NDArray[np.bool_],
        present_BN: NDArray[np.bool_],
    ) -> None:
        """Add a batch. Queries without a candidate are left out."""
        for gain, score, tells, present in zip(gain_BN, score_BN, tells_BN, present_BN, strict=True):
            if present.any():
                self._gains.append(gain[present])
                self._tells.append(tells[present])
                self._first_tells.append(bool(tells[present][score[present].argmax()]))
                self._favourite_tells.append(bool(tells[present][gain[present].argmax()]))

    def measured(self) -> dict[str, float]:
        """Return `gain_auc`, and the shares of queries `any_tells`, `first_tells` and `favourite_tells`.

        `any_tells`: at least one candidate contains the answer. `first_tells`: the candidate that the retriever scores
        highest does. `favourite_tells`: the candidate with the reader's highest gain does. `gain_auc` is left out when
        all candidates, or none, hold the answer.
        """
        if not self._gains:
            return {}
        auc = area_under_curve(np.concatenate(self._gains), np.concatenate(self._tells))
        return {
            **({} if auc is None else {"gain_auc": auc}),
            "any_tells": float(np.mean([tells.any() for tells in self._tells])),
            "first_tells": float(np.mean(self._first_tells)),
            "favourite_tells": float(np.mean(self._favourite_tells)),
        }
