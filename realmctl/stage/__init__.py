"""Stages: classes that read artifacts and make one."""

from realmctl.stage.fields import ROLE, Role, flag_of, hints, reads, roles, runtime, setting, source
from realmctl.stage.stage import Stage, resolve
from realmctl.stage.together import Exchange

__all__ = [
    "ROLE",
    "Exchange",
    "Role",
    "Stage",
    "flag_of",
    "hints",
    "reads",
    "resolve",
    "roles",
    "runtime",
    "setting",
    "source",
]
