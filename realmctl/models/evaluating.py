"""Evaluation in the middle of a training, and activations that a training does not keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

T = TypeVar("T")


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Within this context the module has no dropout and nothing has gradients. Afterwards its mode is as before, also after an error."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)


def computed_again(function: Callable[..., T], *inputs: object) -> T:
    """Return function(*inputs), whose activations the backward pass computes again to save memory.

    Without gradients it is the plain call: `checkpoint` imports PyTorch's compiler, which takes a second.
    """
    if not torch.is_grad_enabled():
        return function(*inputs)
    result: T = checkpoint(function, *inputs, use_reentrant=False)
    return result
