"""Families whose base model transformers runs: over padded rows, and all positions in all layers.

Legend: B rows, L tokens of the longest row, P positions read in each row, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor

from realmctl.models.bert.modules import Encoder
from realmctl.models.families.family import Family
from realmctl.models.inputs import TokenBatch


class Padded(Family):
    """A family whose states are those of the base model's own `forward`."""

    def layer_states(self, base: Encoder, packed: TokenBatch, layers: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Return the states after the given layers (0 = the embeddings), each [B, L, H]; zeros at padding."""
        self.require_positions(base.config, packed.ids_BL.shape[1], "Lengths of the inputs")
        last = base.config.num_hidden_layers
        on_host = packed.mask_BL if packed.mask_on_host is None else packed.mask_on_host
        found = base(
            input_ids=packed.ids_BL,
            attention_mask=None if self.sees_no_padding(base.config) or on_host.all() else packed.mask_BL.long(),
            output_hidden_states=any(layer != last for layer in layers),
            return_dict=True,
        )
        states = [found.last_hidden_state if layer == last else found.hidden_states[layer] for layer in layers]
        # padding may hold NaN (an attention window without a real token), so it is replaced and not multiplied
        return tuple(torch.where(packed.mask_BL[..., None], state, state.new_zeros(())) for state in states)

    def states_at(self, base: Encoder, packed: TokenBatch, position_BP: Tensor) -> Tensor:
        """Return the output at some positions of each row, [B, P, H]."""
        state_BLH = self.layer_states(base, packed, (base.config.num_hidden_layers,))[0]
        return state_BLH.gather(1, position_BP[..., None].expand(-1, -1, state_BLH.shape[-1]))

    def sees_no_padding(self, config: object) -> bool:
        """Whether no real token attends to the padding behind it, so that no mask is needed."""
        return False
