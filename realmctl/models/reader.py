"""The reader p(y|z,x) of pre-training: an encoder reads `[CLS] x [SEP] z [SEP]` and predicts the masked wordpieces of x.

Source: paper, section 3.3.1, knowledge-augmented encoder. Legend: B queries, N candidates, M masks, V vocabulary.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.models.bert.files import load_masked_lm, save_masked_lm
from realmctl.models.bert.modules import Encoder
from realmctl.models.encoder import states_at
from realmctl.models.evaluating import computed_again
from realmctl.models.families.known import mlm_logits
from realmctl.models.inputs import TokenBatch

_LOGITS_AT_ONCE = 1 << 28
"""Vocabulary logits held at a time (1 GiB in fp32). Larger batches are computed in parts, and again in the backward pass."""


class Reader(nn.Module):
    """Masked-language model over joint inputs of a query and each of its candidates."""

    def __init__(self, mlm: Encoder) -> None:
        super().__init__()
        self.mlm = mlm
        mlm.base_model.pooler = None

    @classmethod
    def from_masked_lm(cls, mlm: Encoder) -> Reader:
        """Return a reader on a copy of `mlm` without its pooler, which the reader does not use."""
        return cls(copy.deepcopy(mlm))

    def mlm_log_prob(self, joint: TokenBatch, position_BM: Tensor, target_BM: Tensor, candidates: int) -> Tensor:
        """Return log p(y_m | z_n, x), float32 [B, N, M].

        joint: B * N rows, the candidates of a query side by side. position_BM, target_BM: int64; x is first
        in the joint input, so all candidates of a query share its mask positions. Unused slots may hold
        position 0 and any target, because the marginal ignores them.
        """
        state_RMH = states_at(self.mlm.base_model, joint, position_BM.repeat_interleave(candidates, 0))
        target_RM = target_BM.repeat_interleave(candidates, 0)
        log_prob_RM = self._target_log_prob(state_RMH, target_RM)
        return log_prob_RM.view(-1, candidates, log_prob_RM.shape[1])

    forward = mlm_log_prob

    def logits(self, joint: TokenBatch, position_BM: Tensor, candidates: int) -> Tensor:
        """Return the vocabulary logits at the masks for each candidate, [B, N, M, V]. For inspection; training does not use it."""
        state_RMH = states_at(self.mlm.base_model, joint, position_BM.repeat_interleave(candidates, 0))
        logits_RMV = mlm_logits(self.mlm, state_RMH)
        return logits_RMV.view(-1, candidates, *logits_RMV.shape[1:])

    def save(self, folder: Path) -> None:
        """Write the folder of an encoder with its masked-language-model head."""
        save_masked_lm(self.mlm, folder)

    @classmethod
    def load(cls, folder: Path) -> Reader:
        """Read the folder of an encoder. Raises InputError naming a tensor that does not fit."""
        return cls(load_masked_lm(folder)[0]).eval()

    def _target_log_prob(self, state_RMH: Tensor, target_RM: Tensor) -> Tensor:
        rows = max(1, _LOGITS_AT_ONCE // (state_RMH.shape[1] * self.mlm.config.vocab_size))
        if len(state_RMH) <= rows:
            return self._log_prob(state_RMH, target_RM)
        parts = zip(torch.split(state_RMH, rows), torch.split(target_RM, rows), strict=True)
        return torch.cat([computed_again(self._log_prob, *part) for part in parts])

    def _log_prob(self, state_RMH: Tensor, target_RM: Tensor) -> Tensor:
        logits_RMV = mlm_logits(self.mlm, state_RMH).float()
        loss_R = F.cross_entropy(logits_RMV.flatten(0, 1), target_RM.flatten(), reduction="none")
        return -loss_R.view_as(target_RM)
