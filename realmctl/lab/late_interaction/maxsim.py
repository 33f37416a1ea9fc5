"""MaxSim: each vector of a query finds its nearest vector of a block, and the inner products are added up.

The score is f(x, z) of REALM where the retriever is a late-interaction encoder, and its gradient reaches the block's vectors that were nearest.
Legend: B queries, N blocks of a query, L tokens of a query, M tokens of a block, T tokens of many blocks, D width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TOKENS_AT_ONCE = 2**18
"""Vectors of blocks that are compared at once."""


def maxsim(query_BLD: Tensor, query_BL: Tensor, block_BNMD: Tensor, block_BNM: Tensor) -> Tensor:
    """Return the scores of some blocks for each query, with gradients, float32 [B, N].

    query_BL, block_BNM: bool, the tokens that count. A block without a token has the score 0.
    """
    similar_BNLM = torch.einsum("bld,bnmd->bnlm", query_BLD.float(), block_BNMD.float())
    best_BNL = similar_BNLM.masked_fill(~block_BNM[:, :, None], -torch.inf).amax(3)
    counts_BNL = query_BL[:, None] & block_BNM.any(2)[:, :, None]
    return torch.where(counts_BNL, best_BNL, 0.0).sum(2)


def maxsim_of_all(
    query_LD: NDArray[np.float32], token_TD: NDArray[np.floating], offset_N: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the score of each block for one query, exactly, float32 [N]: all its tokens are compared with all of the blocks.

    token_TD: the vectors of all blocks, end to end, such as a memory map. offset_N: where each block begins, and the end, int64 [N + 1].
    A block without a token has the score 0.
    """
    scores: NDArray[np.float32] = np.zeros(len(offset_N) - 1, np.float32)
    first = 0
    while first < len(scores):
        last = int(np.searchsorted(offset_N, offset_N[first] + TOKENS_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), len(scores))
        start, stop = int(offset_N[first]), int(offset_N[last])
        if stop > start:
            similar_TL = np.asarray(token_TD[start:stop], np.float32) @ query_LD.T
            begin_n = offset_N[first:last] - start
            filled_n = np.flatnonzero(np.diff(offset_N[first : last + 1]) > 0)
            scores[first + filled_n] = np.maximum.reduceat(similar_TL, begin_n[filled_n], axis=0).sum(1)
        first = last
    return scores
