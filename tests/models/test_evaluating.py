"""Evaluation in the middle of a training."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from realmctl.models.evaluating import evaluating


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_and_the_gradients_are_as_before_also_after_an_error(training: bool) -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train(training)
    with pytest.raises(ZeroDivisionError), evaluating(module):
        assert not any(each.training for each in module.modules())
        assert not module(torch.ones(1, 2)).requires_grad
        raise ZeroDivisionError
    assert all(each.training is training for each in module.modules())
    assert module(torch.ones(1, 2)).requires_grad
