"""In-batch attention: each text of a batch reads the others too, each as much as the retriever says (Cai et al. 2025, section 3; the authors' code,
TRUMANCFY/Revela at github.com, and its transformers with `inbatch_attn`).

The language model reads every text alone first, and the keys and values of each layer are kept. Then it reads all texts again. In each layer, the
output of a text's own causal attention gets a second part, before the output projection:

    sum over j != i of  Sim(i, j) * softmax(q_i k_j / sqrt(X)) v_j / (softmax(q_i k_j / sqrt(X)) |v_j|)

where q_i is of the second reading, and k_j and v_j are those of text j read alone, all of whose tokens are seen. The division is the paper's
V-normalisation: it takes away how long the values are, so that no token counts more by its length.
Legend: B texts, L tokens, A heads, X width of a head, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "realmctl-in-batch"
"""The implementation of attention that a model has, by transformers' registry, while it reads a batch."""
EPSILON = 1e-6
"""Added to the length of the values, as in the authors' code."""
ALIGNED = 8
"""By how much heads are made wider for the length of the values: the fast kernels take widths that 8 divides, alike for keys and values."""


@dataclass
class InBatch:
    """A batch that is read. similar_BB: None in the first reading, whose keys and values go to `kept`, by layer."""

    mask_BL: Tensor
    similar_BB: Tensor | None = None
    kept: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @cached_property
    def tokens(self) -> list[int]:
        """How many tokens each text has; padding stands at the ends."""
        return self.mask_BL.sum(1).tolist()


_BATCH: ContextVar[InBatch] = ContextVar("batch that is read")


def attend_in_batch(query_BALX: Tensor, key_BALX: Tensor, value_BALX: Tensor, batch: InBatch, scale: float) -> Tensor:
    """What each text reads of the others, [B, A, L, X]: the second part of the formula above.

    The keys and values are of the texts read alone; they may have fewer heads than the queries, each for a group of them. The length of a value is
    read as one more part of it, so that one call gives both sums of the formula.
    """
    assert batch.similar_BB is not None
    texts, heads, _, width = query_BALX.shape
    length_BAL1 = torch.linalg.vector_norm(value_BALX, dim=-1, keepdim=True)
    value_BALX = F.pad(torch.cat([value_BALX, length_BAL1], -1), (0, ALIGNED - 1))
    query_wide_BALX, key_BALX = (F.pad(each, (0, ALIGNED)) for each in (query_BALX, key_BALX))
    key_BALX, value_BALX = (each.repeat_interleave(heads // each.shape[1], dim=1) for each in (key_BALX, value_BALX))
    read_BALX = torch.zeros_like(query_BALX)
    for other, count in enumerate(batch.tokens):
        key_ALX, value_ALX = key_BALX[other, :, :count], value_BALX[other, :, :count]
        sums_BALX = F.scaled_dot_product_attention(
            query_wide_BALX, key_ALX.expand(texts, -1, -1, -1), value_ALX.expand(texts, -1, -1, -1), scale=scale
        )
        found_BALX = sums_BALX[..., :width] / (sums_BALX[..., width : width + 1] + EPSILON)
        read_BALX = read_BALX + batch.similar_BB[:, other, None, None, None].to(found_BALX.dtype) * found_BALX
    return read_BALX


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, None]:
    """A layer's attention, as transformers calls it: queries, keys and values are [B, A, L, X], the output [B, L, A, X]."""
    own_BLAX, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
    batch, layer = _BATCH.get(), id(module)
    if batch.similar_BB is None:
        batch.kept[layer] = (key, value)
        return own_BLAX, None
    scale = more.get("scaling") or query.shape[-1] ** -0.5
    # Computed again for the gradient: what it needs grows by the square of the batch, in each layer.
    read_BALX = checkpoint(
        attend_in_batch, query, *batch.kept[layer], batch, scale, use_reentrant=False, preserve_rng_state=False
    )
    return own_BLAX + read_BALX.transpose(1, 2), None


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def _reading(net: PreTrainedModel, batch: InBatch) -> Iterator[None]:
    before = net.config._attn_implementation
    net.set_attn_implementation(NAME)
    token = _BATCH.set(batch)
    try:
        yield
    finally:
        _BATCH.reset(token)
        net.set_attn_implementation(before)


def in_batch_logits(net: PreTrainedModel, ids_BL: Tensor, mask_BL: Tensor, similar_BB: Tensor) -> Tensor:
    """The logits of a causal model that reads texts of a batch with each other, [B, L, V].

    Args:
        net: A causal language model of transformers whose layers call its attention interface.
        ids_BL, mask_BL: int64, padded at the ends.
        similar_BB: How much each text reads of each other one. Row i is text i's; the diagonal is 0.

    Raises:
        NotImplementedError: The model has layers of its own kind of attention.
    """
    batch = InBatch(mask_BL)
    with _reading(net, batch):
        net.base_model(input_ids=ids_BL, attention_mask=mask_BL, use_cache=False)
    if len(batch.kept) != net.config.num_hidden_layers:
        raise NotImplementedError(f"{len(batch.kept)} of {net.config.num_hidden_layers} layers call the interface")
    batch.similar_BB = similar_BB
    with _reading(net, batch):
        logits_BLV: Tensor = net(input_ids=ids_BL, attention_mask=mask_BL, use_cache=False).logits
    return logits_BLV


def similarity(query_BD: Tensor, block_BD: Tensor, temperature: float) -> Tensor:
    """Sim(i, j), float32 [B, B]: the softmax over the other texts of the cosines of their vectors, divided by the temperature."""
    query_BD, block_BD = (F.normalize(each.float(), dim=-1) for each in (query_BD, block_BD))
    cosine_BB = query_BD @ block_BD.T / temperature
    return cosine_BB.masked_fill(
        torch.eye(len(cosine_BB), dtype=torch.bool, device=cosine_BB.device), -torch.inf
    ).softmax(-1)
