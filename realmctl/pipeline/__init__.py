"""Stages: classes that read artifacts and make one."""

from realmctl.pipeline.fields import ROLE, Role, flag_of, hints, reads, roles, runtime, setting, source
from realmctl.pipeline.stage import Stage, resolve
from realmctl.pipeline.together import Exchange

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
