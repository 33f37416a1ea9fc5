"""MaxSim: each vector of a query finds its nearest vector of a block, and the inner products are added up.

The score is f(x, z) of REALM where the retriever is a late-interaction encoder, and its gradient reaches the block's vectors that were nearest.
Legend: B queries, N blocks of a query, L tokens of a query, M tokens of a block, T tokens of many blocks, D width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.models.precision import full_precision

TOKENS_AT_ONCE = 2**11
"""Vectors of blocks that are compared at once: few enough that they stay in the processor's cache."""


def maxsim(query_BLD: Tensor, query_BL: Tensor, block_NMD: Tensor, block_NM: Tensor) -> Tensor:
    """Return the scores of some blocks for each query, with gradients, float32 [B, N].

    block_NMD, block_NM: of blocks that all queries share, or with B in front, of those of each query. query_BL, block_NM: bool, the tokens that count.
    A block without a token has the score 0.
    """
    product = "bld,nmd->bnlm" if block_NMD.dim() == 3 else "bld,bnmd->bnlm"
    with full_precision(query_BLD.device):
        similar_BNLM = torch.einsum(product, query_BLD.float(), block_NMD.float())
    best_BNL = similar_BNLM.masked_fill(~block_NM[..., None, :], -torch.inf).amax(3)
    counts_BNL = query_BL[:, None] & block_NM.any(-1)[..., None]
    return torch.where(counts_BNL, best_BNL, 0.0).sum(2)


def maxsim_of_all(
    query_LD: NDArray[np.float32], token_TD: NDArray[np.floating], offset_N: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the score of each block for one query, exactly, float32 [N]: all its tokens are compared with all of the blocks.

    token_TD: the vectors of all blocks, end to end, float16 or float32, such as a memory map. offset_N: where each block begins, and the end, int64
    [N + 1]. A block without a token has the score 0.
    """
    scores: NDArray[np.float32] = np.zeros(len(offset_N) - 1, np.float32)
    query_DL = torch.from_numpy(np.ascontiguousarray(query_LD, np.float32)).T
    first = 0
    while first < len(scores):
        last = int(np.searchsorted(offset_N, offset_N[first] + TOKENS_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), len(scores))
        start, stop = int(offset_N[first]), int(offset_N[last])
        if stop > start:
            part_TD = torch.from_numpy(
                np.array(token_TD[start:stop])
            )  # torch makes float32 of float16 faster than numpy
            similar_TL = (part_TD.float() @ query_DL).numpy()
            begin_n = offset_N[first:last] - start
            filled_n = np.flatnonzero(np.diff(offset_N[first : last + 1]) > 0)
            scores[first + filled_n] = np.maximum.reduceat(similar_TL, begin_n[filled_n], axis=0).sum(1)
        first = last
    return scores
