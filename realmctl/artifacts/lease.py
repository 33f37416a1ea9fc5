"""Leases on artifacts: a reader's kernel lock (flock) that tells `realmctl gc` not to delete what is in use.

A lease is a shared lock on the manifest of a version. The kernel frees it when the process ends, however it ends. `gc` takes
an exclusive lock before it deletes. On a file system without such locks a reader has no lease, and `gc` deletes nothing.
"""

from __future__ import annotations

import os
import time
import weakref
from pathlib import Path

from realmctl.artifacts.disk import lock_file
from realmctl.errors import InputError, as_realmctl_error

PATIENCE_SECONDS = 10.0
"""How long a reader waits for a `gc` that has locked the version to delete it or to let it be."""
POLL_SECONDS = 0.02


class Lease:
    """A shared lock on a file, held as long as the object lives. Leases on the same file in one process share one lock."""

    def __init__(self, handle: int) -> None:
        weakref.finalize(self, os.close, handle)

    def __reduce__(self) -> tuple[type[NoLease], tuple[()]]:
        return NoLease, ()


class NoLease:
    """What a lease is in another process that it was sent to: the sender holds the lock."""


_leases: weakref.WeakValueDictionary[Path, Lease] = weakref.WeakValueDictionary()


def lease(path: Path) -> Lease | NoLease:
    """Return a shared lock on a file. A file system without locks gives none.

    Raises:
        InputError: The file is gone, or it is being deleted.
        ResourceError: There is no file handle left.
    """
    path = path.absolute()
    if (held := _leases.get(path)) is not None:
        return held
    try:
        handle = _open(path)
    except OSError as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} cannot be opened ({error.strerror}). Name another version."
        ) from None
    try:
        _lock_shared(handle, path)
    except BaseException:
        os.close(handle)
        raise
    return _leases.setdefault(path, Lease(handle))


def try_exclusive(path: Path) -> int | None:
    """Return a handle with an exclusive lock on a file, to be closed; None when someone uses the file, or it is gone."""
    try:
        handle = _open(path)
    except OSError:
        return None
    try:
        lock_file(handle)
        if _is_there(handle, path):
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def _lock_shared(handle: int, path: Path) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            lock_file(handle, shared=True)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                raise InputError(f"{path.parent} is being deleted by `realmctl gc`. Name another version.") from None
            time.sleep(POLL_SECONDS)
        except OSError:  # a file system without locks
            return
    if not _is_there(handle, path):
        raise InputError(f"{path.parent} was deleted by `realmctl gc` while it was opened. Name another version.")


def _is_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False
