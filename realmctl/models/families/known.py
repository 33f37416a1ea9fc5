"""The families that are known, by `model_type`: those of realmctl, and those of other packages (docs/extending.md).

A model of another type is refused. Nothing of a model's folder decides which code runs, apart from this name.
"""

from __future__ import annotations

from functools import cache

from torch import Tensor

from realmctl.models.bert.modules import Encoder
from realmctl.models.families.family import Family
from realmctl.registry import Registry

FAMILIES = Registry(
    "family of encoders",
    group="realmctl.families",
    core={"bert": "realmctl.models.families.bert:Bert"},
)
WHY_NOT = {
    "deberta": "its attention is disentangled from the positions",
    "deberta-v2": "its attention is disentangled from the positions, and its head is not one of masked language modelling",
}
"""Why a type that people ask for is not known."""


@cache
def family(model_type: str) -> Family:
    """Return the family of a `model_type`. Raises ConfigError for one that is not known."""
    return FAMILIES.load(model_type, Family)()


def family_of(model: Encoder) -> Family:
    """Return the family of a base model or of a masked language model."""
    return family(model.config.model_type)


def positions_of(model: Encoder) -> int:
    """Return the most tokens of an input of a model."""
    return family_of(model).positions(model.config)


def require_positions(model: Encoder, tokens: int, what: str) -> None:
    """Check that an encoder has a position for each wordpiece of its longest input (`Family.require_positions`)."""
    family_of(model).require_positions(model.config, tokens, what)


def mlm_logits(masked_lm: Encoder, state_XH: Tensor) -> Tensor:
    """Return the logits of the masked-language-model head for states of the base model, [..., V]."""
    return family_of(masked_lm).logits(masked_lm, state_XH)


def known_types(model_type: str) -> str:
    """Return what to say of a `model_type` that is not known."""
    why = WHY_NOT.get(model_type)
    return (f"Models of this type cannot be used: {why}. " if why else "") + (
        f"The types that can be used are {', '.join(FAMILIES.names())}."
    )
