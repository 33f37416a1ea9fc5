"""Where series are, and where something new may be written: not in artifacts and series, which hold only what realmctl wrote."""

from __future__ import annotations

import os
import re
from pathlib import Path

from realmctl.artifacts.artifact import VERSION_NAME, version_numbers
from realmctl.artifacts.disk import QUARANTINE
from realmctl.artifacts.folder import LAST, LOCK, MANIFEST, NEWEST, PINNED
from realmctl.artifacts.manifest import is_artifact
from realmctl.artifacts.unfinished import partial_folders
from realmctl.errors import ConfigError

OWN_NAMES = re.compile(
    rf"{VERSION_NAME.pattern}(\.partial)?|\.{VERSION_NAME.pattern}\.deleted|"
    + "|".join(map(re.escape, (LOCK, LAST, PINNED, NEWEST, QUARANTINE, MANIFEST)))
)
"""Names in the folder of a series that realmctl uses itself."""
LOST_AND_FOUND = "lost+found"
"""Folder at the top of a disk, which only root may list."""
MAX_SERIES_DEPTH = 3
"""How deep below a workspace series are looked for: `workspace/a/b/blocks`."""


def is_series(folder: Path) -> bool:
    """Whether a folder holds versions or unfinished runs."""
    return bool(version_numbers(folder) or partial_folders(folder))


def _is_seen_as_series(folder: Path) -> bool:
    """Whether a folder above a place is a series. One that this user may not list holds nothing that he could hide."""
    try:
        return is_series(folder)
    except PermissionError:
        return False


def series_below(folder: Path, depth: int = MAX_SERIES_DEPTH, closed: list[Path] | None = None) -> list[Path]:
    """The series below a folder, in the order of their names. A link to a series is one too; other links are not followed.

    closed: Gets the folders that this user may not list. They may hold series.
    """
    if not folder.is_dir():
        return []
    found, own = [], is_series(folder)
    for child in sorted(path for path in folder.iterdir() if path.is_dir()):
        if own and OWN_NAMES.fullmatch(child.name):
            continue
        try:
            if is_series(child):
                found.append(child)
            elif depth > 1 and not child.is_symlink() and not child.name.startswith("."):
                found += series_below(child, depth - 1, closed)
        except PermissionError:
            if closed is not None and not child.name.startswith(".") and child.name != LOST_AND_FOUND:
                closed.append(child)
    return found


def require_place(path: Path, option: str) -> Path:
    """Check that a file or folder may be written at `path`, and return the place with links followed.

    Args:
        path: The place. It may exist.
        option: How the user named it, for messages: `--out runs/blocks`.

    Raises:
        ConfigError: It lies in an artifact or in a series, a parent of it is a file, or a link on the way leads nowhere.
    """
    place = Path(os.path.realpath(path))
    for named in (path, *path.parents):
        if named.is_symlink() and not named.exists():
            raise ConfigError(
                f"{option}: {named} is a link to {named.readlink()}, which does not exist. Make that folder, or remove the link."
            )
    for folder in (place, *place.parents):
        if is_artifact(folder):
            raise ConfigError(f"{option} lies in an artifact, {folder}, which never changes. Name another place.")
        if folder != place and _is_seen_as_series(folder):
            raise ConfigError(
                f"{option} lies in a series, {folder}, which holds only versions. Name a place outside of it."
            )
    nearest = next(folder for folder in place.parents if folder.exists())
    if not nearest.is_dir():
        raise ConfigError(f"{option}: {nearest} is a file, not a folder. Name another place.")
    return place
