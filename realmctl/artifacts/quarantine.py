"""A place for damaged files: they are moved there and reported, never deleted silently."""

from __future__ import annotations

import itertools
from pathlib import Path

from realmctl.log import warn

QUARANTINE = "quarantine"


def set_aside(path: Path, quarantine: Path, reason: str) -> None:
    """Move a damaged file or folder into the folder `quarantine`, whose parent must exist, and warn.

    Do nothing when `path` is gone: another process moved it, or the run has ended.
    """
    try:
        quarantine.mkdir(exist_ok=True)
        names = (quarantine / f"{path.name}-{number}" for number in itertools.count(1))
        target = next(name for name in names if not name.exists())
        path.rename(target)
    except FileNotFoundError:
        return
    warn(f"{reason} {path.name} was moved to {target}.")
