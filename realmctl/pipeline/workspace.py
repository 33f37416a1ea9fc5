"""Inputs that a stage takes from the workspace when the user names none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from realmctl.artifacts import MANIFEST, open_artifact, version_numbers
from realmctl.artifacts.place import series_below
from realmctl.errors import InputError, MismatchError
from realmctl.pipeline.choosing import resolve
from realmctl.pipeline.discovery import own_stages
from realmctl.pipeline.fields import Role, completed, flag_of, roles, unheeded
from realmctl.pipeline.sources import check_is_there
from realmctl.pipeline.stage import Stage
from realmctl.registry import offered

IMPORTED = ("retriever", "qa-model")
"""Kinds that `realmctl import-realm` makes from published checkpoints."""


def with_defaults(stage: type[Stage], given: Mapping[str, object], workspace: Path) -> dict[str, object]:
    """Return the values of a stage's fields, with the workspace's artifacts for the inputs that were not given.

    What was given is checked first, so that a wrong value is told before a missing input.

    Raises:
        ConfigError: A value has another type than its field, lies outside its range, or says nothing beside the others.
        InputError: There is no artifact or no file where one was named, or the workspace lacks an artifact that the stage needs.
    """
    values = stage.checked(given)
    known, missing = roles(stage), dict[str, Path]()
    for name, role in known.items():
        if not _has_default(name, role, values):
            continue
        path = workspace / name.replace("_", "-")
        if _has_version(path):
            values[name] = path
        elif not role.optional:
            missing[name] = path
    for _, error in unheeded(stage, completed(stage, values)):
        raise error
    if missing:
        for name, role in known.items():
            _check_is_there(name, role, values.get(name))
    for name, path in missing.items():
        values[name] = default_series(stage.command(), flag_of(name), known[name].kinds[0], path)
    return values


def _check_is_there(name: str, role: Role, value: Any) -> None:
    """Check that there is something where an input or a source was named. Nothing is fetched or read to the end.

    Raises ConfigError, InputError or MismatchError.
    """
    if value is None:
        return
    if role.name == "reads":
        resolve(value, role.kinds, flag_of(name))
    elif role.name == "source":
        check_is_there(value, role.literals, role.hub, name if role.positional else flag_of(name), streams=True)


def default_series(command: str, flag: str, kind: str, path: Path) -> Path:
    """Return a series that a command takes where the user names none.

    Raises:
        InputError: It has no finished version. The message names the commands that make one.
    """
    if not _has_version(path):
        raise InputError(
            f"{command} needs {flag}, and {path} has no finished version (looked from {Path.cwd()}). {_how_to_make(kind)}, "
            f"or name an artifact{_such_as(kind, path.parent)}."
        )
    return path


def _has_version(series: Path) -> bool:
    return bool(version_numbers(series)) or (series / MANIFEST).is_file()


def _such_as(kind: str, workspace: Path) -> str:
    """Name the series of this kind that the workspace has under other names, such as those of a sweep."""
    found = []
    for series in series_below(workspace):
        with suppress(InputError, MismatchError):
            found += [str(series)] if open_artifact(series).kind == kind else []
    return f", such as {' or '.join(found[:3])}" if found else ""


def _how_to_make(kind: str) -> str:
    """Name the commands that make an artifact of a kind from other kinds, such as "Run `realmctl tag` first, which makes spans"."""
    makers = [
        name
        for name, stage in own_stages().items()
        if stage.makes == kind
        and not any(role.kinds[:1] == (kind,) and not role.optional for role in roles(stage).values())
    ]
    makers += ["import-realm"] if kind in IMPORTED and "import-realm" in offered("realmctl.commands") else []
    if len(makers) == 1:
        return f"Run `realmctl {makers[0]}` first, which makes {kind}"
    named = ", ".join(f"`realmctl {name}`" for name in makers)
    return f"Run one of {named} first: each makes a {kind}" if makers else f"Make {kind} first"


def _has_default(name: str, role: Role, values: Mapping[str, object]) -> bool:
    """Return whether a field takes the workspace's artifact."""
    if role.name != "reads" or role.explicit_only or values.get(name) is not None:
        return False
    return role.replaced_by is None or not role.replaced_by(values)
