"""The reader p(y|z,x) of pre-training: BERT over `[CLS] x [SEP] z [SEP]` that fills the masks of x.

Paper section 3.3.1, knowledge-augmented encoder. Legend: B queries, N candidates, M masks, V vocabulary.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import BertForMaskedLM

from realmctl.nn.bert.encoder import states_at
from realmctl.nn.bert.files import load_masked_lm, save_masked_lm
from realmctl.nn.inputs import TokenBatch

_LOGITS_AT_ONCE = 1 << 28
"""Vocabulary logits held at a time (1 GiB in fp32); more are made in parts, again in the backward pass."""


class Reader(nn.Module):
    """Masked-language model over joint inputs of a query and each of its candidates."""

    def __init__(self, mlm: BertForMaskedLM) -> None:
        super().__init__()
        self.mlm = mlm
        mlm.bert.pooler = None

    @classmethod
    def from_masked_lm(cls, mlm: BertForMaskedLM) -> Reader:
        """A reader on a copy of `mlm`, its unused pooler dropped."""
        return cls(copy.deepcopy(mlm))

    def mlm_log_prob(self, joint: TokenBatch, position_BM: Tensor, target_BM: Tensor, candidates: int) -> Tensor:
        """log p(y_m | z_n, x), float32 [B, N, M].

        joint: B * N rows, the candidates of a query side by side. position_BM, target_BM: int64; x is first
        in the joint input, so all candidates of a query share its mask positions. Unused slots may hold
        position 0 and any target: the marginal leaves them out.
        """
        state_RMH = states_at(self.mlm.bert, joint, position_BM.repeat_interleave(candidates, 0))
        target_RM = target_BM.repeat_interleave(candidates, 0)
        log_prob_RM = self._target_log_prob(state_RMH, target_RM)
        return log_prob_RM.view(-1, candidates, log_prob_RM.shape[1])

    forward = mlm_log_prob

    def logits(self, joint: TokenBatch, position_BM: Tensor, candidates: int) -> Tensor:
        """Vocabulary logits at the masks under each candidate, [B, N, M, V]: for looking, not training."""
        state_RMH = states_at(self.mlm.bert, joint, position_BM.repeat_interleave(candidates, 0))
        logits_RMV: Tensor = self.mlm.cls(state_RMH)
        return logits_RMV.view(-1, candidates, *logits_RMV.shape[1:])

    def save(self, folder: Path) -> None:
        """A BERT folder with its head."""
        save_masked_lm(self.mlm, folder)

    @classmethod
    def load(cls, folder: Path) -> Reader:
        """Read a BERT folder. Raises InputError naming a tensor that does not fit."""
        return cls(load_masked_lm(folder)[0]).eval()

    def _target_log_prob(self, state_RMH: Tensor, target_RM: Tensor) -> Tensor:
        rows = max(1, _LOGITS_AT_ONCE // (state_RMH.shape[1] * self.mlm.config.vocab_size))
        if len(state_RMH) <= rows:
            return self._log_prob(state_RMH, target_RM)
        parts = zip(torch.split(state_RMH, rows), torch.split(target_RM, rows), strict=True)
        return torch.cat([checkpoint(self._log_prob, *part, use_reentrant=False) for part in parts])

    def _log_prob(self, state_RMH: Tensor, target_RM: Tensor) -> Tensor:
        logits_RMV = self.mlm.cls(state_RMH).float()
        loss_R = F.cross_entropy(logits_RMV.flatten(0, 1), target_RM.flatten(), reduction="none")
        return -loss_R.view_as(target_RM)
