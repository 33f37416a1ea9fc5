"""The gradient cache: a contrastive loss over a large batch, computed in chunks.

A first pass embeds all chunks without gradients, and computes the loss and its gradient with respect to each embedding. A
second pass embeds each chunk again with the same dropout, and propagates the stored gradients to the weights (Gao et al.
2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup"). Gradients equal those of one pass over the
whole batch under the same dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class CachedGradient:
    """What the second pass needs for a chunk.

    cpu_state, cuda_state: random states before the chunk, which repeat its dropout.
    gradients: float32, gradients of the loss with respect to the chunk's embeddings, in their shapes.
    fraction: the chunk's share of the examples. loss: the loss of the batch times this share.
    accuracy: accuracy over the whole batch.
    """

    cpu_state: Tensor
    cuda_state: Tensor | None
    gradients: tuple[Tensor, ...]
    fraction: float
    loss: float
    accuracy: float

    def restore_random_state(self, device: torch.device) -> None:
        """Set the random state to that before the first pass, so that the chunk's dropout is repeated."""
        torch.set_rng_state(self.cpu_state)
        if self.cuda_state is not None:
            torch.cuda.set_rng_state(self.cuda_state, device)

    def surrogate(self, embeddings: Sequence[Tensor]) -> Tensor:
        """Return a scalar whose value is `loss`, and whose gradient with respect to the embeddings is the cached one."""
        products = [
            (embedding.float() * gradient).sum() for embedding, gradient in zip(embeddings, self.gradients, strict=True)
        ]
        inner = torch.stack(products).sum()
        return inner - inner.detach() + self.loss


class CachedPart(Protocol):
    """A part of a batch, a dataclass. cached: what the first pass computed of it; None where the batch is computed at once."""

    @property
    def cached(self) -> CachedGradient | None: ...


C = TypeVar("C", bound=CachedPart)


def prepared(
    chunks: Sequence[C],
    embed: Callable[[C], Sequence[Tensor]],
    contrast: Callable[..., tuple[Tensor, Tensor]],
    device: torch.device,
) -> list[C]:
    """Return the chunks with what the second pass needs; a single chunk is computed at once and needs nothing. Args: see `cached_gradients`."""
    if len(chunks) == 1:
        return [*chunks]
    cached = cached_gradients(chunks, embed, contrast, device)
    return [replace(chunk, cached=each) for chunk, each in zip(chunks, cached, strict=True)]  # type: ignore[type-var]


def contrasted(
    chunk: CachedPart, embeddings: Sequence[Tensor], contrast: Callable[..., tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor | float]:
    """Return loss and accuracy of a chunk from its embeddings, scalars; their gradients are those of the whole batch.

    A chunk that the first pass has seen must have been embedded with the random state that its `cached` restored.
    """
    if chunk.cached is not None:
        return chunk.cached.surrogate(embeddings), chunk.cached.accuracy
    loss, accuracy = contrast(*embeddings)
    return loss, accuracy.double()


def cached_gradients(
    chunks: Sequence[object],
    embed: Callable[[Any], Sequence[Tensor]],
    contrast: Callable[..., tuple[Tensor, Tensor]],
    device: torch.device,
) -> list[CachedGradient]:
    """The first pass.

    Args:
        chunks: Parts of the batch, in order.
        embed: Returns the embeddings of a chunk, one tensor or more. The rows of the first tensor are its examples.
        contrast: Returns loss and accuracy, scalars, of the concatenated embeddings of all chunks, float32.
        device: Device of the embeddings.
    """
    states, embedded = [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append((torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None))
            embedded.append([embedding.float() for embedding in embed(chunk)])
    whole = [torch.cat(parts).requires_grad_() for parts in zip(*embedded, strict=True)]
    with torch.enable_grad():
        loss, accuracy = contrast(*whole)
        loss.backward()  # type: ignore[no-untyped-call]
    split = [
        torch.split(torch.zeros_like(tensor) if tensor.grad is None else tensor.grad, [len(part) for part in parts])
        for tensor, parts in zip(whole, zip(*embedded, strict=True), strict=True)
    ]
    fractions = [len(parts[0]) / len(whole[0]) for parts in embedded]
    return [
        CachedGradient(*state, gradients, fraction, float(loss.detach()) * fraction, float(accuracy))
        for state, gradients, fraction in zip(states, zip(*split, strict=True), fractions, strict=True)
    ]
