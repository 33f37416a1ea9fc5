"""States of BERT at all positions or at some, and logits of its masked-language-model head.

Legend: B rows, L tokens of the longest row, T real tokens of the batch, M or P positions read in each
row, H hidden, V vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import BertForMaskedLM, BertModel
from transformers.models.bert.modeling_bert import BertLayer

from realmctl.models.bert.files import load_masked_lm, save_masked_lm, scratch_config
from realmctl.models.bert.layers import TokenLayout, run_layer
from realmctl.models.bert.limits import require_positions
from realmctl.models.inputs import TokenBatch

__all__ = [
    "cls_state",
    "hidden_states",
    "layer_states",
    "load_masked_lm",
    "masked_logits",
    "masked_loss",
    "save_masked_lm",
    "scratch_config",
    "states_at",
    "states_at_places",
]


def hidden_states(bert: BertModel, packed: TokenBatch) -> Tensor:
    """Return the last layer's states, [B, L, H]; zeros at padding."""
    return layer_states(bert, packed, (bert.config.num_hidden_layers,))[0]


def layer_states(bert: BertModel, packed: TokenBatch, layers: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return the states after the given layers (0 = the embeddings), each [B, L, H]; zeros at padding."""
    rows = TokenLayout(packed)
    states = [_embed(bert, packed, rows)]
    for layer in bert.encoder.layer[: max(layers)]:
        states.append(_run(layer, states[-1], rows))
    return tuple(rows.pad(states[layer]) for layer in layers)


def states_at(bert: BertModel, packed: TokenBatch, position_BP: Tensor) -> Tensor:
    """Return the last layer's states at some positions of each row, [B, P, H].

    The result is exact. The last layer computes only these positions.

    position_BP: int64, each at a real token of its row.
    """
    rows = TokenLayout(packed)
    state_TH = _embed(bert, packed, rows)
    for layer in bert.encoder.layer[:-1]:
        state_TH = _run(layer, state_TH, rows)
    return _run(bert.encoder.layer[-1], state_TH, rows, position_BP)


def states_at_places(bert: BertModel, packed: TokenBatch, place_M: Tensor) -> Tensor:
    """Return the last layer's states at some places of the batch, [M, H]. The last layer computes few other positions.

    place_M: int64 on the CPU, row * L + position, by rising row, each at a real token. So nothing is read back from the device.
    """
    row_M, position_M = np.divmod(place_M.numpy(), packed.ids_BL.shape[1])
    count_B = np.bincount(row_M, minlength=len(packed))
    rank_M = np.arange(len(row_M)) - (np.cumsum(count_B) - count_B)[row_M]
    position_BP = np.zeros((len(packed), count_B.max()), dtype=np.int64)  # unused places read [CLS]
    position_BP[row_M, rank_M] = position_M
    device = packed.ids_BL.device
    row, rank, position = (torch.from_numpy(a).to(device, non_blocking=True) for a in (row_M, rank_M, position_BP))
    return states_at(bert, packed, position)[row, rank]


def cls_state(bert: BertModel, packed: TokenBatch, last_layer_cls_only: bool = True) -> Tensor:
    """Return the last layer's state at `[CLS]`, [B, H]. By default the last layer computes only that position."""
    if not last_layer_cls_only:
        return hidden_states(bert, packed)[:, 0]
    return states_at(bert, packed, packed.ids_BL.new_zeros(len(packed), 1))[:, 0]


def masked_logits(mlm: BertForMaskedLM, state_BLH: Tensor, position_BM: Tensor) -> Tensor:
    """Return vocabulary logits at the given positions, [B, M, V].

    The states are gathered before they are projected, as in REALM's code (google-research/language, realm/model.py).
    Logits at every position would be by far the largest tensor of a step.
    """
    row_B1 = torch.arange(len(state_BLH), device=state_BLH.device)[:, None]
    logits_BMV: Tensor = mlm.cls(state_BLH[row_B1, position_BM])
    return logits_BMV


def masked_loss(mlm: BertForMaskedLM, state_BLH: Tensor, place_M: Tensor, target_M: Tensor) -> Tensor:
    """Return the summed cross-entropy of wordpieces predicted from states, a scalar.

    place_M: int64, places in the flattened [B * L]. target_M: int64, the wordpieces that belong there.
    """
    return F.cross_entropy(mlm.cls(state_BLH.flatten(0, 1)[place_M]).float(), target_M, reduction="sum")


def _embed(bert: BertModel, packed: TokenBatch, rows: TokenLayout) -> Tensor:
    require_positions(bert.config, packed.ids_BL.shape[1], "Lengths of the inputs")
    position_BL = torch.arange(packed.ids_BL.shape[1], device=packed.ids_BL.device).expand_as(packed.ids_BL)
    embeddings = bert.embeddings
    state_TH = embeddings.word_embeddings(rows.pack(packed.ids_BL))
    state_TH = state_TH + embeddings.token_type_embeddings(rows.pack(packed.segments_BL))
    state_TH = state_TH + embeddings.position_embeddings(rows.pack(position_BL))
    embedding_TH: Tensor = embeddings.dropout(embeddings.LayerNorm(state_TH))
    return embedding_TH


def _run(layer: BertLayer, state_TH: Tensor, rows: TokenLayout, position_BP: Tensor | None = None) -> Tensor:
    """Run the layer. After `gradient_checkpointing_enable` the backward pass computes it again to save memory."""
    if layer.gradient_checkpointing and layer.training and torch.is_grad_enabled():
        state: Tensor = checkpoint(run_layer, layer, state_TH, rows, position_BP, use_reentrant=False)
        return state
    return run_layer(layer, state_TH, rows, position_BP)
