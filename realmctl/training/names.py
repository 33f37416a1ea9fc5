"""What trainings find by name: readers and losses of pre-training, fitted starts, and trackers of runs. Nothing heavy is imported here."""

from __future__ import annotations

from realmctl.registry import Registry

READERS = Registry(
    "reader of pre-training",
    group="realmctl.readers",
    core={"masked": "realmctl.training.readers.masked:MaskedReader"},
)
RETRIEVER_LOSSES = Registry(
    "loss of the retriever",
    group="realmctl.retriever_losses",
    core={"marginal": "realmctl.training.losses:Marginal"},
)
TRACKERS = Registry("tracker", group="realmctl.trackers", core={})
HEADS = Registry("fitted head", group="realmctl.heads", core={})
PROJECTIONS = Registry("fitted projection", group="realmctl.projections", core={})
RANDOM = "random"
"""The head or the projection that is not fitted."""


def head_names() -> list[str]:
    """Return the values of `--head-init`."""
    return [RANDOM, *HEADS.names()]


def projection_names() -> list[str]:
    """Return the values of `--projection-init`."""
    return [RANDOM, *PROJECTIONS.names()]
