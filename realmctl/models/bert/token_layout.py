"""The real tokens of a padded batch, laid end to end.

Legend: B rows, L tokens of the longest row, T real tokens of the batch, P positions read, X anything.
"""

from __future__ import annotations

from collections import Counter

import torch
import torch.nn.functional as F
from torch import Tensor

from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import to_device

_MULTIPLE = 64
"""On a CPU in bfloat16, and of many tokens without gradients, the number of packed tokens is rounded up to a multiple of this by filler tokens.

There oneDNN compiles code for every shape that it has not met, which takes longer than the product itself, and keeps it
(benchmarks/pretrain_step.md). A filler token is a copy of a real one, but it has no attention and nothing reads it."""

_MANY = 1024


class TokenLayout:
    """Positions of the real tokens in a padded batch. `pack` drops the padding, `pad` puts it back.

    Packed rows lie end to end by rising length, so rows of equal length are neighbours. The positions are computed on the CPU and
    sent to the batch's device, which then works on without an answer.

    On a CPU filler tokens follow them.

    groups: (rows, tokens of each) of every length that occurs, by rising length.
    filler: number of filler tokens. longest: tokens of the longest row.
    ends_E: int32 [B + 1], 0 and the end of each packed row.
    order_B: int64, the rows of the batch in packed order. place_B: int64, the place of each row in that order.
    """

    def __init__(self, packed: TokenBatch) -> None:
        self.mask_BL = packed.mask_BL
        mask_BL = packed.mask_BL if packed.mask_on_host is None else packed.mask_on_host
        lengths_B, order_B = mask_BL.sum(1).sort(stable=True)
        place_B = order_B.argsort()
        self.groups = [(count, length) for length, count in Counter[int](lengths_B.tolist()).items()]
        row_T, position_T = mask_BL[order_B].nonzero(as_tuple=True)
        device = self.mask_BL.device
        rounded = torch.is_autocast_enabled("cpu") or (len(row_T) >= _MANY and not torch.is_grad_enabled())
        self.filler = -len(row_T) % _MULTIPLE if rounded and device.type == "cpu" else 0
        self.longest = self.groups[-1][1] if self.groups else 0
        ends_E = F.pad(lengths_B.cumsum(0, dtype=torch.int32), (1, 0))
        self.ends_E = to_device(ends_E, device)
        self.order_B, self.place_B = (to_device(each, device) for each in (order_B, place_B))
        self.first_B1 = to_device((lengths_B.cumsum(0) - lengths_B)[place_B, None], device)
        token_T = order_B[row_T] * mask_BL.shape[1] + position_T
        if self.filler:
            token_T = torch.cat([token_T, token_T[:1].expand(self.filler)])
        self.token_T = to_device(token_T, device)

    def pack(self, padded_BLX: Tensor) -> Tensor:
        """Drop the padding: [B, L, ...] to [T, ...], then filler tokens."""
        return padded_BLX.flatten(0, 1).index_select(0, self.token_T)

    def pad(self, packed_TX: Tensor) -> Tensor:
        """Put the padding back: [T, ...] to [B, L, ...], zeros at padding."""
        zeros = packed_TX.new_zeros(self.mask_BL.numel(), *packed_TX.shape[1:])
        real = len(self.token_T) - self.filler
        padded = zeros.index_copy(0, self.token_T[:real], packed_TX[:real])
        return padded.view(*self.mask_BL.shape, *packed_TX.shape[1:])

    def at(self, packed_TX: Tensor, position_BP: Tensor) -> Tensor:
        """Return the tokens at the given positions of each row: [T, X] to [B, P, X]."""
        return packed_TX[self.first_B1 + position_BP]
