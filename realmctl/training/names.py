"""What trainings find by name: objectives, readers, losses, sources of candidates and refreshes of pre-training, and fitted starts. Nothing heavy is imported here."""

from __future__ import annotations

from realmctl.registry import Registry

READERS = Registry(
    "reader of pre-training", group="realmctl.readers", core={"masked": "realmctl.training.readers:MaskedReader"}
)
OBJECTIVES = Registry(
    "objective of pre-training", group="realmctl.objectives", core={"realm": "realmctl.training.realm:RealmObjective"}
)
RETRIEVER_LOSSES = Registry(
    "loss of the retriever", group="realmctl.retriever_losses", core={"marginal": "realmctl.training.losses:Marginal"}
)
CANDIDATE_SOURCES = Registry(
    "source of candidates",
    group="realmctl.candidate_sources",
    core={"index": "realmctl.training.candidate_source:FromIndex"},
)
REFRESHES = Registry(
    "refresh",
    group="realmctl.refreshes",
    core={
        "background": "realmctl.training.refresh.kinds:BackgroundRefresh",
        "lockstep": "realmctl.training.refresh.kinds:LockstepRefresh",
        "inline": "realmctl.training.refresh.kinds:InlineRefresh",
    },
)
NEVER = "never"
"""The value of `--refresh` for an index that stays as it is."""
HEADS = Registry("fitted head", group="realmctl.heads", core={})
PROJECTIONS = Registry("fitted projection", group="realmctl.projections", core={})
RANDOM = "random"
"""The head or the projection that is not fitted."""


def refresh_names() -> list[str]:
    """Return the values of `--refresh`."""
    return [*REFRESHES.names(), NEVER]


def head_names() -> list[str]:
    """Return the values of `--head-init`."""
    return [RANDOM, *HEADS.names()]


def projection_names() -> list[str]:
    """Return the values of `--projection-init`."""
    return [RANDOM, *PROJECTIONS.names()]
