"""Stages: classes that read artifacts and make one."""

from realmctl.pipeline.choosing import Named, choose, resolve
from realmctl.pipeline.command import Command, InWorkspace, Show
from realmctl.pipeline.fields import (
    ROLE,
    Precision,
    Role,
    argument,
    check_device,
    check_refresh_device,
    flag_of,
    hints,
    output,
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
    "Command",
    "Exchange",
    "InWorkspace",
    "Named",
    "Precision",
    "Role",
    "Settings",
    "Show",
    "Stage",
    "argument",
    "check_device",
    "check_refresh_device",
    "choose",
    "extended",
    "flag_of",
    "hints",
    "output",
    "reads",
    "resolve",
    "roles",
    "runtime",
    "setting",
    "source",
]
