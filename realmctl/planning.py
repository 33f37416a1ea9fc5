"""What a stage would do: its inputs from the workspace, and the dry run that writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl import series
from realmctl.artifact import MANIFEST, open_artifact, version_numbers
from realmctl.catalogue import size_text
from realmctl.errors import InputError, MismatchError
from realmctl.stage import Role, Stage, flag_of, roles


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


def plan(stage: Stage, out: Path) -> dict[str, Any]:
    """What making this stage at `out` would do. Nothing is written. Raises what making it would."""
    out = series.place(out, stage.makes)
    with stage.localised() as local:
        local.check()
        origin, estimate = local.origin(), local.estimate()
    made = series.find(out, origin.recipe)
    going_on = None if made else series.unfinished(out, origin)
    return {
        "stage": stage.command(),
        "makes": str(made.path if made else (going_on or out / f"v{series.next_number(out)}").with_suffix("")),
        "reuses": made is not None,
        "resumes": going_on is not None,
        "inputs": {name: str(artifact.path) for name, artifact in stage.inputs().items()},
        "settings": dict(origin.settings),
        "recipe": origin.recipe,
        "estimate": {**estimate, **_seconds_of_last(out)},
    }


def _seconds_of_last(out: Path) -> dict[str, float]:
    try:
        return {"seconds_of_last_version": float(open_artifact(out).manifest["seconds"])}
    except (InputError, MismatchError):
        return {}


def plan_text(value: Mapping[str, Any]) -> str:
    """A dry run for people."""
    verb = "reuse" if value["reuses"] else "resume" if value["resumes"] else "make"
    lines = [f"{value['stage']}: would {verb} {value['makes']}"]
    lines += [f"  input    {name:<20} {path}" for name, path in value["inputs"].items()]
    lines += [f"  setting  {name:<20} {setting}" for name, setting in value["settings"].items()]
    lines += [f"  estimate {name:<20} {_amount(name, number)}" for name, number in value["estimate"].items()]
    return "\n".join(lines)


def _amount(name: str, number: float) -> str:
    return size_text(int(number)) if name.endswith("bytes") else f"{number:g}"
