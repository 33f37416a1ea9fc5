"""What a stage takes from the workspace where the user names no artifact."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import MANIFEST, version_numbers
from realmctl.errors import InputError
from realmctl.stage.fields import Role, flag_of, roles
from realmctl.stage.stage import Stage


def with_defaults(stage: type[Stage], given: Mapping[str, Any], workspace: Path) -> dict[str, Any]:
    """Field values, with the workspace's artifacts where none was named. Raises InputError if one lacks."""
    values = dict(given)
    for name, role in roles(stage).items():
        if not _wanted(name, role, values):
            continue
        path = workspace / name.replace("_", "-")
        if version_numbers(path) or (path / MANIFEST).is_file():
            values[name] = path
        elif not role.optional:
            raise InputError(
                f"{stage.command()} needs {flag_of(name)}, and {path} has no finished version (looked from "
                f"{Path.cwd()}). Run the stage that makes {' or '.join(role.kinds)} first, or name one."
            )
    return values


def _wanted(name: str, role: Role, values: Mapping[str, Any]) -> bool:
    """Whether a field takes the workspace's artifact."""
    if role.name != "reads" or role.named or values.get(name) is not None:
        return False
    return role.unless is None or not role.unless(values)
