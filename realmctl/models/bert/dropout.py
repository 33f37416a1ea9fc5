"""Change the dropout of a model that is loaded."""

from __future__ import annotations

from torch import nn
from transformers import BertConfig

from realmctl.models.bert.limits import RATES


def set_dropout(module: nn.Module, rate: float) -> None:
    """Set every dropout of a module and of the BERTs in it, and their configurations, which are saved with the weights.

    Args:
        module: A retriever, a reader or another module of BERTs.
        rate: The new rate, from 0 to below 1.
    """
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
        if isinstance(config := getattr(part, "config", None), BertConfig):
            for name in RATES:
                setattr(config, name, rate)
