"""Attention inside the rows of a batch whose tokens lie end to end.

There are three ways, with one result: `attend` takes the fastest one for the device.
Legend: B rows, L tokens of the longest row, T real tokens of the batch, P positions read, A heads, X width of a head.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.precision import full_precision


def attend(query: Tensor, key_TAX: Tensor, value_TAX: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    """Attention inside each row, in the shape of `query`: [T, A, X] or [B, P, A, X].

    Args:
        query: Of all tokens, or of some positions of each row; on the device of `key_TAX`.
        key_TAX: Floating point. value_TAX: The same.
        rows: How the tokens lie.
        dropout: Share of the attention that is dropped.
    """
    if query.device.type == "cpu":
        return attend_by_length(query, key_TAX, value_TAX, rows, dropout)
    if not dropout and _has_flash_attention(query):
        return attend_end_to_end(query, key_TAX, value_TAX, rows)
    return attend_padded(query, key_TAX, value_TAX, rows, dropout)


def attend_by_length(query: Tensor, key_TAX: Tensor, value_TAX: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    """`attend` with one call for all rows of a length.

    This is the fastest method on a CPU. With gradients in bfloat16 the backward pass is our own, because that of PyTorch's
    attention takes several times as long there (benchmarks/pretrain_step.md).
    """
    key, value = _by_length(key_TAX, rows), _by_length(value_TAX, rows)
    whole = query.ndim == 3
    asked = _by_length(query, rows) if whole else torch.split(query[rows.order_B], [count for count, _ in rows.groups])
    context = [_attention(q, k, v, None, dropout) for q, k, v in zip(asked, key, value, strict=True)]
    if whole:
        filler = query.new_zeros(rows.filler, *query.shape[1:])
        return torch.cat([*(each.flatten(0, 1) for each in context), filler])
    return torch.cat(context)[rows.place_B]


def _by_length(packed_TAX: Tensor, rows: TokenLayout) -> list[Tensor]:
    """Return the rows of each length, [rows, tokens, A, X]."""
    parts = torch.split(packed_TAX, [*(count * length for count, length in rows.groups), rows.filler])[:-1]
    return [part.view(*group, *packed_TAX.shape[1:]) for part, group in zip(parts, rows.groups, strict=True)]


def attend_end_to_end(query: Tensor, key_TAX: Tensor, value_TAX: Tensor, rows: TokenLayout) -> Tensor:
    """`attend` without padding, by FlashAttention's kernel for rows of several lengths, in bfloat16 or float16 on a GPU.

    PyTorch's function takes no dropout (PyTorch 2.13).
    """
    if query.ndim == 3:
        context: Tensor = _varlen_attn()(
            query, key_TAX, value_TAX, rows.ends_E, rows.ends_E, rows.longest, rows.longest
        )
        return context
    count, positions = query.shape[:2]
    ends_E = torch.arange(count + 1, dtype=torch.int32, device=query.device) * positions
    asked = query[rows.order_B].flatten(0, 1)
    found = _varlen_attn()(asked, key_TAX, value_TAX, ends_E, rows.ends_E, positions, rows.longest)
    by_row: Tensor = found.view(query.shape)[rows.place_B]
    return by_row


def _has_flash_attention(query: Tensor) -> bool:
    """Whether that kernel takes such queries: its types, the width of a head, and GPUs from Ampere on."""
    width = query.shape[-1]
    fits = query.dtype in (torch.bfloat16, torch.float16) and width <= 256 and not width % 8
    return fits and _varlen_attn() is not None and torch.cuda.get_device_capability(query.device) >= (8, 0)


@cache
def _varlen_attn() -> Any:
    """PyTorch's attention over rows that lie end to end; None where it has none (before 2.10)."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


def attend_padded(query: Tensor, key_TAX: Tensor, value_TAX: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    """`attend` in one call over padded rows, for an accelerator: it takes every type, and dropout."""
    query_BLAX = rows.pad(query) if query.ndim == 3 else query
    key_BLAX, value_BLAX = rows.pad(key_TAX), rows.pad(value_TAX)
    context_BLAX = _attention(query_BLAX, key_BLAX, value_BLAX, rows.mask_BL[:, None, None, :], dropout)
    return rows.pack(context_BLAX) if query.ndim == 3 else context_BLAX


def _attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """All [B, tokens, A, X]; mask is bool, broadcastable to [B, A, query tokens, key tokens]."""
    heads_first = (query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2))
    if torch.is_grad_enabled() and query.requires_grad and query.dtype == torch.bfloat16 and query.device.type == "cpu":
        with full_precision(query.device):
            context: Tensor = _Attention.apply(*heads_first, dropout)  # type: ignore[no-untyped-call]
        return context.transpose(1, 2)
    return F.scaled_dot_product_attention(*heads_first, attn_mask=mask, dropout_p=dropout).transpose(1, 2)


class _Attention(torch.autograd.Function):
    """Attention by matrix products in the type of its arguments, all [B, A, tokens, X]. The shares [B, A, query tokens, key tokens] are kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        scaled = query * query.shape[-1] ** -0.5
        share = kept = torch._softmax(scaled @ key.mT, -1, False)
        mask = None
        if dropout:
            kept, mask = torch.native_dropout(share, dropout, True)
        ctx.save_for_backward(scaled, key, value, share, mask)
        ctx.dropout = dropout
        return kept @ value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scaled, key, value, share, mask = ctx.saved_tensors
        with full_precision(gradient.device):
            of_share, kept = gradient @ value.mT, share
            if mask is not None:
                scale = 1 / (1 - ctx.dropout)
                of_share, kept = (
                    torch.ops.aten.native_dropout_backward(each, mask, scale) for each in (of_share, share)
                )
            of_score = torch._softmax_backward_data(of_share, share, -1, share.dtype)
            of_query = of_score @ key * key.shape[-1] ** -0.5
            return of_query, of_score.mT @ scaled, kept.mT @ gradient, None
