"""The gradient cache against one backward pass: several tensors, chunks without rows, the same random numbers."""

from __future__ import annotations

import pytest
import torch

from realmctl.training.gradient_cache import cached_gradients


def embed(layers, chunk):
    """Two embeddings of a chunk, with dropout; the second has rows in the last chunk alone."""
    query_BD = torch.dropout(layers[0](chunk), 0.3, True)
    block_BD = torch.dropout(layers[1](chunk), 0.3, True)
    return query_BD, block_BD[: len(chunk) % 4]


def contrast(query_BD, block_CD):
    score_BC = query_BD @ torch.cat([query_BD, block_CD]).T
    return score_BC.logsumexp(1).mean(), (score_BC.argmax(1) == 0).float().mean()


@pytest.mark.parametrize("sizes", [[4, 4, 3], [11], [4, 4]])
def test_gradients_and_loss_are_those_of_one_pass_with_the_same_dropout(sizes):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(6, 5), torch.nn.Linear(6, 5)]
    chunks = torch.randn(sum(sizes), 6).split(sizes)
    device = torch.device("cpu")

    torch.manual_seed(7)
    embedded = [embed(layers, chunk) for chunk in chunks]
    loss, accuracy = contrast(*(torch.cat(parts) for parts in zip(*embedded, strict=True)))
    loss.backward()
    expected = [parameter.grad.clone() for layer in layers for parameter in layer.parameters()]
    for layer in layers:
        layer.zero_grad()

    torch.manual_seed(7)
    found = cached_gradients(chunks, lambda chunk: embed(layers, chunk), contrast, device)
    torch.manual_seed(99)
    total = 0.0
    for chunk, cached in zip(chunks, found, strict=True):
        cached.restore_random_state(device)
        part = cached.surrogate(embed(layers, chunk))
        part.backward()
        total += part.item()
    assert total == pytest.approx(loss.item(), abs=1e-6)
    assert sum(cached.fraction for cached in found) == pytest.approx(1)
    assert {cached.accuracy for cached in found} == {accuracy.item()}
    for parameter, gradient in zip((p for layer in layers for p in layer.parameters()), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
