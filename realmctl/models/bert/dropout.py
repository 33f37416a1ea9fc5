"""Change the dropout of a model that is loaded."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from realmctl.models.families.known import family_of


def set_dropout(module: nn.Module, rate: float) -> None:
    """Set every dropout of a module and of the encoders in it, and their configurations, which are saved with the weights.

    Args:
        module: A retriever, a reader or another module of encoders.
        rate: The new rate, from 0 to below 1.
    """
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
    for part in [part for part in module.modules() if isinstance(part, PreTrainedModel)]:
        family_of(part).set_dropout(part.base_model, rate)
