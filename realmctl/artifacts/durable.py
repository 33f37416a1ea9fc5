"""Disk writes that survive a power cut. Every published byte passes through this module.

A failed write, fsync or rename always raises OSError. None is retried, because the kernel marks a page as
clean after a failed fsync, so that a second fsync succeeds without writing it.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from realmctl.artifacts.checked_file import CheckedFile

WRITING_SUFFIX = ".writing"
"""Ending of the temporary name under which `write_file` writes."""


def sync(path: Path) -> None:
    """Flush a file or folder to the disk (fsync)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(path: Path) -> None:
    """Make a folder and its missing parents, and flush the folders that hold them.

    All parents up to the mount point are flushed, also those that exist: a killed run may have made them without
    flushing. A parent that this user may not read is left out, because it cannot be opened for a flush.
    """
    path.mkdir(parents=True, exist_ok=True)
    folder = path.absolute()
    while not folder.is_mount() and os.access(folder.parent, os.R_OK):
        folder = folder.parent
        sync(folder)


def write_file(path: Path, data: bytes) -> None:
    """Write a small file atomically: a reader sees the old content, or all of the new content.

    The order is: write a temporary file, read it back, fsync it, rename it, fsync the folder. If the last fsync
    fails, a file that did not exist before is removed again.
    """
    temporary = path.with_name(path.name + WRITING_SUFFIX)
    file = CheckedFile(temporary)
    file.write(data)
    file.close()
    sync(temporary)
    existed = os.path.lexists(path)
    temporary.replace(path)
    try:
        sync(path.parent)
    except OSError:
        if not existed:
            path.unlink(missing_ok=True)
        raise


def rename_to_fresh(source: Path, target: Path) -> None:
    """Rename a file or folder to a name that is free, and flush the folder of the new name.

    If the flush fails, the rename is undone, so that a failed commit is not visible.

    Raises:
        FileExistsError: `target` exists.
    """
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.rename(target)
    try:
        sync(target.parent)
    except OSError:
        target.rename(source)
        raise


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, read the copy back, and compare the two. `target` is replaced if it exists."""
    with source.open("rb") as file:
        copy = CheckedFile(target)
        shutil.copyfileobj(file, copy)
        copy.close()
