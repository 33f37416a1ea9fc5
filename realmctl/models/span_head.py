"""The span reader of fine-tuning: BERT scores every short span of a block as a possible answer.

Source of scores and losses: ORQA (Lee et al. 2019; google-research/language, orqa/models/orqa_model.py).
Legend: B rows (question, block), Q questions, K blocks of a question, L tokens, S spans, H hidden.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.models.bert.files import load_bert, save_bert
from realmctl.models.bert.modules import Encoder
from realmctl.models.encoder import hidden_states
from realmctl.models.evaluating import computed_again
from realmctl.models.families.known import positions_of
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import to_device
from realmctl.models.weights import load_into, load_tensors, save_tensors

LOWEST = torch.finfo(torch.float32).min
"""The score of spans that cannot be chosen. It is finite, so that a row with only such spans has finite gradients."""


def span_table(length: int, max_width: int) -> tuple[Tensor, Tensor]:
    """Return the first and last positions (inclusive) of all spans of 1 to max_width tokens, int64 [S], ordered by width."""
    widths = range(1, min(max_width, length) + 1)
    start_S = torch.cat([torch.arange(length - width + 1) for width in widths])
    end_S = torch.cat([torch.arange(width - 1, length) for width in widths])
    return start_S, end_S


class SpanHead(nn.Module):
    """s(i, j) = w LayerNorm(ReLU(A h_i + B h_j + c)) + w0, hidden size 256."""

    def __init__(self, hidden: int, span_hidden: int = 256) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, 2 * span_hidden)
        self.norm = nn.LayerNorm(span_hidden, eps=1e-3)
        self.output = nn.Linear(span_hidden, 1)
        for linear in (self.dense, self.output):
            nn.init.trunc_normal_(linear.weight, std=0.02, a=-0.04, b=0.04)
            nn.init.zeros_(linear.bias)

    def forward(self, state_BLH: Tensor, max_width: int) -> Tensor:
        """Return the scores of the spans of `span_table(L, max_width)`, float32 [B, S].

        Spans of one width are scored together, from shifted sums. The backward pass computes them again to save memory.
        """
        start_BLX, end_BLX = self.dense(state_BLH).chunk(2, -1)
        length = state_BLH.shape[1]
        parts = []
        for width in range(1, min(max_width, length) + 1):
            pair = start_BLX[:, : length - width + 1], end_BLX[:, width - 1 :]
            parts.append(computed_again(self._score, *pair))
        return torch.cat(parts, 1).float()

    def _score(self, start_BLX: Tensor, end_BLX: Tensor) -> Tensor:
        score_BL1: Tensor = self.output(self.norm(F.relu(start_BLX + end_BLX)))
        return score_BL1[..., 0]


class SpanReader(nn.Module):
    """An encoder over `[CLS] question [SEP] body [SEP]` and the span head."""

    def __init__(self, bert: Encoder) -> None:
        super().__init__()
        self.bert = bert
        self.bert.pooler = None
        self.head = SpanHead(bert.config.hidden_size)
        self.requires_grad_(True)

    @classmethod
    def from_bert(cls, bert: Encoder) -> SpanReader:
        """Return a span reader with a random head on a copy of `bert`."""
        return cls(copy.deepcopy(bert))

    @property
    def positions(self) -> int:
        """Most wordpieces of an input, special tokens included."""
        return positions_of(self.bert)

    def span_scores(
        self, packed: TokenBatch, block_mask_BL: Tensor, max_width: int
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the scores of all spans, float32 [B, S], and their positions (start_S, end_S) on the CPU, int64, ends inclusive.

        block_mask_BL: bool, True at the block's tokens. Spans that begin or end elsewhere score `LOWEST`.
        """
        table = span_table(block_mask_BL.shape[1], max_width)
        start_S, end_S = (to_device(part, block_mask_BL.device) for part in table)
        score_BS = self.head(hidden_states(self.bert, packed), max_width)
        valid_BS = block_mask_BL[:, start_S] & block_mask_BL[:, end_S]
        return score_BS.masked_fill(~valid_BS, LOWEST), table

    forward = span_scores

    def save(self, folder: Path) -> None:
        """Write config.json and model.safetensors for AutoModel, and span_head.safetensors."""
        save_bert(self.bert, folder)
        save_tensors(self.head.state_dict(), folder / "span_head.safetensors")

    @classmethod
    def load(cls, folder: Path) -> SpanReader:
        """Read what `save` wrote. Raises InputError naming a tensor that does not fit."""
        reader = cls(load_bert(folder, pooler=False))
        load_into(reader.head, load_tensors(folder / "span_head.safetensors"), folder)
        return reader.eval()


def reader_loss(score_QKS: Tensor, correct_QKS: Tensor) -> Tensor:
    """Return -log of the probability of the correct (block, span) pairs in one softmax over all pairs, [Q].

    score_QKS: span score + retrieval score of its block. correct_QKS: bool. 0 with zero gradient for a
    question without a correct span.
    """
    return _correct_share(score_QKS.flatten(1), correct_QKS.flatten(1))


def within_block(score_QRS: Tensor) -> Tensor:
    """Return log p(span | block, question), a softmax over each block's spans, float32. `LOWEST` stays `LOWEST`."""
    return score_QRS.float().log_softmax(-1).masked_fill(score_QRS == LOWEST, LOWEST)


def marginal_loss(joint_QRS: Tensor, score_QR: Tensor, correct_QRS: Tensor) -> Tensor:
    """Return -log sum_z p(z|x) p(y|z,x) over the blocks read, [Q]: the paper's objective (REALM, equation 1, section 3.1).

    joint_QRS: `within_block` + the retrieval score of the block, score_QR, whose softmax is p(z|x). p(y|z,x) is the sum
    over the correct spans. 0 with zero gradient for a question without one.
    """
    correct_QC = correct_QRS.flatten(1)
    matching_Q = torch.logsumexp(joint_QRS.float().flatten(1).masked_fill(~correct_QC, LOWEST), 1)
    return torch.where(correct_QC.any(1), torch.logsumexp(score_QR.float(), 1) - matching_Q, 0.0)


def retrieval_loss(score_QK: Tensor, correct_QK: Tensor) -> Tensor:
    """Return -log of the probability of the retrieved blocks that hold an answer, [Q]; 0 where none does."""
    return _correct_share(score_QK, correct_QK)


def _correct_share(score_QC: Tensor, correct_QC: Tensor) -> Tensor:
    score_QC = score_QC.float()
    share_Q = torch.logsumexp(score_QC, 1) - torch.logsumexp(score_QC.masked_fill(~correct_QC, LOWEST), 1)
    return torch.where(correct_QC.any(1), share_Q, 0.0)
