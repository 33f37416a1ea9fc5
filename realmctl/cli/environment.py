"""Facts about the installation and the machine that need no PyTorch: versions, extras, cores, memory, disk."""

from __future__ import annotations

import os
import platform
import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from realmctl.version import __version__

REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*;.*extra\s*==\s*['\"]([A-Za-z0-9._-]+)['\"]")
EXTRAS_FOR_DEVELOPERS = ("dev", "docs")


def environment(workspace: Path) -> dict[str, Any]:
    """Return versions, the packages of each extra, cores, memory in bytes, and free bytes on the disk of `workspace`."""
    folder = next(place for place in (workspace.absolute(), *workspace.absolute().parents) if place.exists())
    return {
        "realmctl": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "workspace": str(workspace),
        "free_disk_bytes": shutil.disk_usage(folder).free,
        "extras": extras(),
    }


def extras() -> dict[str, dict[str, str | None]]:
    """Return {extra: {package: version, or None if it is not installed}} from realmctl's metadata.

    It is empty if realmctl runs from a source folder without being installed.
    """
    found: dict[str, dict[str, str | None]] = {}
    try:
        requirements = metadata.requires("realmctl") or []
    except metadata.PackageNotFoundError:
        return found
    for requirement in requirements:
        match = REQUIREMENT.fullmatch(requirement)
        if match and match[2] not in EXTRAS_FOR_DEVELOPERS:
            found.setdefault(match[2], {})[match[1]] = _version(match[1])
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
