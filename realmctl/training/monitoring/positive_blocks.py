"""Measure whether the reader's gains identify the blocks that contain the answer. REALM depends on it.

The gradient of the retriever rewards a candidate z by its gain log p(y|z,x) - log p(y|null,x) (paper, section 3.3). It
helps only if blocks that contain the hidden wordpieces have larger gains than other blocks. Such blocks are called positive.
Legend: B queries, N candidates, K candidates without the null document, M masks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from realmctl.corpus.corpus import Corpus
from realmctl.models.marginal import retrieval_utility
from realmctl.tokens.token_search import occurrences

CHANCE_BAND = 2.0
"""Standard errors above 1/2 up to which an AUC is called chance."""


def positives(targets: Sequence[NDArray[np.int64]], rows_BN: NDArray[np.int64], corpus: Corpus) -> NDArray[np.bool_]:
    """Return which candidates contain the hidden wordpieces `targets` of their query side by side, bool [B, N].

    It is False at rows below 0.
    """
    positive_BN = np.zeros(rows_BN.shape, dtype=bool)
    for place, row in np.ndenumerate(rows_BN):
        if row >= 0:
            body = np.asarray(corpus.tokens(int(row)), dtype=np.int64)
            positive_BN[place] = len(occurrences(body, targets[place[0]])) > 0
    return positive_BN


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


def chance_limit(positives: int, negatives: int) -> float:
    """Return the AUC above which scores separate the classes better than chance: 1/2 plus `CHANCE_BAND` standard errors.

    The standard error is that of scores without a relation to the classes, sqrt((P + N + 1) / (12 P N)) (Mann and
    Whitney 1947, section 4). Both counts must be at least 1.
    """
    error = ((positives + negatives + 1) / (12 * positives * negatives)) ** 0.5
    return float(0.5 + CHANCE_BAND * error)


class PositiveBlocks:
    """Gains, retrieval scores and labels of the candidates of many queries, and statistics of them."""

    def __init__(self) -> None:
        self._gains: list[NDArray[np.float32]] = []
        self._tells: list[NDArray[np.bool_]] = []
        self._first_positive: list[bool] = []
        self._favourite_positive: list[bool] = []

    def add(
        self,
        gain_BN: NDArray[np.float32],
        score_BN: NDArray[np.float32],
        positive_BN: NDArray[np.bool_],
        present_BN: NDArray[np.bool_],
    ) -> None:
        """Add a batch. Queries without a candidate are left out."""
        for gain, score, tells, present in zip(gain_BN, score_BN, positive_BN, present_BN, strict=True):
            if present.any():
                self._gains.append(gain[present])
                self._tells.append(tells[present])
                self._first_positive.append(bool(tells[present][score[present].argmax()]))
                self._favourite_positive.append(bool(tells[present][gain[present].argmax()]))

    def add_compared(
        self,
        targets: Sequence[NDArray[np.int64]],
        rows_BN: NDArray[np.int64],
        corpus: Corpus,
        mask_BM: Tensor,
        score_BN: Tensor,
        log_prob_BNM: Tensor,
        present_BN: Tensor,
    ) -> None:
        """Add queries from scores and log-probabilities of their candidates.

        Candidate 0 of the tensors is the null document. In `rows_BN` the null document, row -1, may be missing.

        Args:
            targets: Hidden wordpieces of each query.
            rows_BN: Rows of the candidates.
            corpus: Blocks that the rows number.
            mask_BM: bool, False at unused slots of log_prob_BNM, which holds log p(y_m|z,x).
            score_BN: Retrieval scores.
            present_BN: bool, False where a query has fewer candidates.
        """
        gain_BN = retrieval_utility(score_BN, log_prob_BNM, mask_BM, present_BN).document_BN
        rows_BK = rows_BN[:, rows_BN.shape[1] - gain_BN.shape[1] + 1 :]
        gain_BK, score_BK = (tensor[:, 1:].float().cpu().numpy() for tensor in (gain_BN, score_BN))
        self.add(gain_BK, score_BK, positives(targets, rows_BK, corpus), rows_BK >= 0)

    def at_start(self) -> dict[str, float]:
        """Return what `pretrain` checks before its first step.

        `any_positive` and `gain_auc` are those of `measured`. `gain_auc_above_chance` is `gain_auc` minus `chance_limit`: at 0
        or below, the gains separate positive blocks from others no better than chance.
        """
        measured = {"any_positive": 0.0, **self.measured()}  # without any candidate nothing is told
        found = {name: value for name, value in measured.items() if name in ("gain_auc", "any_positive")}
        if "gain_auc" in found:
            tells = np.concatenate(self._tells)
            positives = int(tells.sum())
            found["gain_auc_above_chance"] = found["gain_auc"] - chance_limit(positives, len(tells) - positives)
        return found

    def measured(self) -> dict[str, float]:
        """Return `gain_auc`, and the shares of queries `any_positive`, `first_positive` and `favourite_positive`.

        `any_positive`: at least one candidate contains the answer. `first_positive`: the candidate that the retriever scores
        highest does. `favourite_positive`: the candidate with the reader's highest gain does. `gain_auc` is left out when
        all candidates, or none, hold the answer.
        """
        if not self._gains:
            return {}
        auc = area_under_curve(np.concatenate(self._gains), np.concatenate(self._tells))
        return {
            **({} if auc is None else {"gain_auc": auc}),
            "any_positive": float(np.mean([tells.any() for tells in self._tells])),
            "first_positive": float(np.mean(self._first_positive)),
            "favourite_positive": float(np.mean(self._favourite_positive)),
        }
