"""Stages: classes that read artifacts and make one."""

from realmctl.pipeline.choosing import Named, choose, resolve
from realmctl.pipeline.fields import (
    ROLE,
    Precision,
    Role,
    check_device,
    check_refresh_device,
    flag_of,
    hints,
    reads,
    roles,
    runtime,
    setting,
    source,
)
from realmctl.pipeline.settings import Settings, extended
from realmctl.pipeline.stage import Stage
from realmctl.pipeline.together import Exchange

__all__ = [
    "ROLE",
    "Exchange",
    "Named",
    "Precision",
    "Role",
    "Settings",
    "Stage",
    "check_device",
    "check_refresh_device",
    "choose",
    "extended",
    "flag_of",
    "hints",
    "reads",
    "resolve",
    "roles",
    "runtime",
    "setting",
    "source",
]
