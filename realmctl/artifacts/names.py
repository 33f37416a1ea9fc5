"""Names of files and parts that cannot lead out of an artifact's folder."""

from __future__ import annotations

from realmctl.errors import InputError

MAX_COMPONENT_BYTES = 255
"""Limit on the name of one file or folder, in bytes; common file systems have this limit."""
MAX_NAME_BYTES = 1024
"""Limit on a relative name with its folders."""
MAX_NAME_DEPTH = 16
"""Limit on the components of a relative name."""
SHOWN_CHARACTERS = 80


def component_problem(name: str) -> str | None:
    """Why `name` may not be the name of one file or folder; None if it may."""
    if name in ("", ".", ".."):
        return "it is not a name"
    if "/" in name or "\\" in name:
        return "it has a slash or backslash"
    if not name.isprintable():
        return "it has characters that cannot be printed"
    if len(name.encode()) > MAX_COMPONENT_BYTES:
        return f"it is longer than {MAX_COMPONENT_BYTES} bytes"
    return None


def relative_problem(name: str) -> str | None:
    """Why `name` may not be the name of a file relative to an artifact's folder; None if it may."""
    components = name.split("/")
    if len(components) > MAX_NAME_DEPTH:
        return f"it has more than {MAX_NAME_DEPTH} components"
    problem = next(filter(None, map(component_problem, components)), None)
    if problem is None and len(name.encode()) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    return problem


def require_component(name: str) -> None:
    """Raise InputError unless `name` may be the name of one file or folder."""
    _require(name, component_problem(name))


def require_relative(name: str) -> None:
    """Raise InputError unless `name` may be the name of a file relative to an artifact's folder."""
    _require(name, relative_problem(name))


def shown(name: str) -> str:
    """A name for a message: quoted, escaped and cut."""
    return repr(name if len(name) <= SHOWN_CHARACTERS else name[:SHOWN_CHARACTERS] + "...")


def _require(name: str, problem: str | None) -> None:
    if problem:
        raise InputError(
            f"{shown(name)} may not be the name of a file in an artifact: {problem}. Names are relative, and stay "
            "below the artifact's folder."
        )
