"""Free disk space, checked before work starts instead of after hours of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from realmctl.errors import ResourceError


def free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk that `folder` is on, or will be on once it is made."""
    place = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    return shutil.disk_usage(place).free


def require_free_disk(folder: Path, needed: float, what: str) -> None:
    """Check that the disk of `folder` has room. Files that are there from an unfinished run count as part of what is needed.

    Args:
        folder: The folder that will be filled.
        needed: Bytes that the folder will have.
        what: What fills it, for the message.

    Raises:
        ResourceError: There is less room. Nothing was written.
    """
    there = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    free = free_bytes(folder)
    if needed - there > free:
        raise ResourceError(
            f"{folder}: {what} needs about {(needed - there) / 1e9:.1f} GB, and {free / 1e9:.1f} GB of the disk are free. "
            "Free some disk space, or write to another disk with --out or --workspace."
        )
