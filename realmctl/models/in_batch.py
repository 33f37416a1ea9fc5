"""Losses of contrast within a batch: each query has to find its block among all of the batch.

Legend: B queries, C blocks of the batch, D projection.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realmctl.models.precision import full_precision


def in_batch_scores(query_BD: Tensor, block_CD: Tensor, block_mask_BC: Tensor | None = None) -> Tensor:
    """Return the inner products of each query with all blocks of the batch, float32 [B, C].

    block_CD: with several processes, the blocks of all of them, with gradient. block_mask_BC: bool, False removes a block from a
    query's softmax.
    """
    with full_precision(query_BD.device):
        score_BC = query_BD.float() @ block_CD.float().T
    return score_BC if block_mask_BC is None else score_BC.masked_fill(~block_mask_BC, torch.finfo(torch.float32).min)


def in_batch_softmax(score_BC: Tensor, target_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return loss and accuracy of the inverse cloze task: each query picks its block among all blocks of the batch.

    target_B: int64, the number of each query's block.

    Returns:
        Mean cross-entropy and accuracy, scalars.
    """
    accuracy = (score_BC.argmax(1) == target_B).float().mean()
    return F.cross_entropy(score_BC, target_B), accuracy


def divergence(score_BC: Tensor, teacher_BC: Tensor) -> Tensor:
    """Return the mean over the queries of KL(teacher || student), a scalar in nats, both softmaxes over the same blocks.

    Its gradient with respect to the scores is (softmax(score) - softmax(teacher)) / B. (Hinton et al. 2015, at temperature 1; Li and
    Hoiem 2016, "Learning without Forgetting", where the teacher is the model before training.)
    """
    log_teacher_BC = teacher_BC.float().log_softmax(1)
    return F.kl_div(score_BC.log_softmax(1), log_teacher_BC, reduction="batchmean", log_target=True)
