"""Temporary folders that are removed even after a kill: the next one that is made removes those of dead processes.

Each folder `realmctl-XXXXXXXX` has a lock file `realmctl-XXXXXXXX.lock` beside it. Its process holds a kernel lock (flock) on
that file, which the kernel frees when the process dies. Where a file system has no locks, nobody knows whether a process is
dead, and what a killed process left stays.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from realmctl.artifacts.disk import NO_LOCKS, lock_file

PREFIX = "realmctl-"
LOCK_NAME = re.compile(rf"(\.?{PREFIX}[0-9a-f]{{16}})\.lock")


@contextmanager
def temporary_folder(base: Path | None = None) -> Iterator[Path]:
    """Yield a new empty folder in the system's temporary directory, or a hidden one in `base`, and remove it at the end.

    It may be renamed. What killed processes left in `base` is removed first.
    """
    place, prefix = (Path(tempfile.gettempdir()), PREFIX) if base is None else (base, f".{PREFIX}")
    remove_dead_folders(place)
    handle, folder = _new(place, prefix)
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(handle)


def remove_dead_folders(base: Path) -> None:
    """Remove the temporary folders of this user whose process is dead. Folders that cannot be removed are left."""
    for lock in base.glob(f"*{PREFIX}*.lock"):
        match = LOCK_NAME.fullmatch(lock.name)
        if match is None:
            continue
        with suppress(OSError):
            handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                status = os.fstat(handle)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and _is_locked_here(handle, lock):
                    _remove(base / match[1])
            finally:
                os.close(handle)


def _new(base: Path, prefix: str) -> tuple[int, Path]:
    """Make a lock file, lock it, then make the folder. Another process may remove the file before it is locked; try again."""
    while True:
        folder = base / f"{prefix}{secrets.token_hex(8)}"
        lock = _lock_of(folder)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            if _is_locked_here(handle, lock, without_locks=True):
                folder.mkdir(mode=0o700)
                return handle, folder
        except BaseException:
            lock.unlink(missing_ok=True)
            os.close(handle)
            raise
        os.close(handle)


def _is_locked_here(handle: int, lock: Path, without_locks: bool = False) -> bool:
    """Lock the file. Return whether that succeeded and the file still has its name; `without_locks` where there are no locks."""
    try:
        lock_file(handle)
        return os.path.samestat(os.fstat(handle), lock.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return without_locks


def _remove(folder: Path) -> None:
    """Remove the folder, then its lock file. The lock file stays when the folder does, so that a later process tries again."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        _lock_of(folder).unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + ".lock")
