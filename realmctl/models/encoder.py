"""States of an encoder of any family, at all positions or at some.

Legend: B rows, L tokens of the longest row, M or P positions read in each row, H hidden.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from realmctl.models.bert.modules import Encoder
from realmctl.models.families.known import family_of, mlm_logits
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import to_device


def hidden_states(base: Encoder, packed: TokenBatch) -> Tensor:
    """Return the last layer's states, [B, L, H]; zeros at padding."""
    return layer_states(base, packed, (base.config.num_hidden_layers,))[0]


def layer_states(base: Encoder, packed: TokenBatch, layers: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return the states after the given layers (0 = the embeddings), each [B, L, H]; zeros at padding."""
    return family_of(base).layer_states(base, packed, layers)


def states_at(base: Encoder, packed: TokenBatch, position_BP: Tensor) -> Tensor:
    """Return the last layer's states at some positions of each row, [B, P, H].

    The result is exact. Where the family allows it, the last layer computes only these positions.

    position_BP: int64, each at a real token of its row.
    """
    return family_of(base).states_at(base, packed, position_BP)


def states_at_places(base: Encoder, packed: TokenBatch, place_M: Tensor) -> Tensor:
    """Return the last layer's states at some places of the batch, [M, H]. The last layer computes few other positions.

    place_M: int64 on the CPU, row * L + position, by rising row, each at a real token. So nothing is read back from the device.
    """
    row_M, position_M = np.divmod(place_M.numpy(), packed.ids_BL.shape[1])
    count_B = np.bincount(row_M, minlength=len(packed))
    rank_M = np.arange(len(row_M)) - (np.cumsum(count_B) - count_B)[row_M]
    position_BP = np.zeros((len(packed), count_B.max()), dtype=np.int64)  # unused places read [CLS]
    position_BP[row_M, rank_M] = position_M
    device = packed.ids_BL.device
    row, rank, position = (to_device(torch.from_numpy(a), device) for a in (row_M, rank_M, position_BP))
    return states_at(base, packed, position)[row, rank]


def cls_state(base: Encoder, packed: TokenBatch, last_layer_cls_only: bool = True) -> Tensor:
    """Return the last layer's state at `[CLS]`, [B, H]. By default the last layer computes only that position."""
    if not last_layer_cls_only:
        return hidden_states(base, packed)[:, 0]
    return states_at(base, packed, packed.ids_BL.new_zeros(len(packed), 1))[:, 0]


def masked_loss(mlm: Encoder, state_BLH: Tensor, place_M: Tensor, target_M: Tensor) -> Tensor:
    """Return the summed cross-entropy of wordpieces predicted from states, a scalar.

    place_M: int64, places in the flattened [B * L]. target_M: int64, the wordpieces that belong there.
    """
    return F.cross_entropy(mlm_logits(mlm, state_BLH.flatten(0, 1)[place_M]).float(), target_M, reduction="sum")
