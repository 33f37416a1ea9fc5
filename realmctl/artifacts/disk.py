"""Files on a disk: read with care, because another person may have made them, and written so that they survive a power cut.

Reading: regular files only, and never more bytes than a limit. Writing: what is written is read back and compared, which detects a
disk that reports success for a write that did not happen. A failed write, fsync or rename always raises OSError. None is retried,
because the kernel marks a page as clean after a failed fsync, so that a second fsync succeeds without writing it.
"""

from __future__ import annotations

import errno
import io
import itertools
import os
import secrets
import shutil
import stat
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from realmctl.errors import AccessError, InputError, ResourceError, as_realmctl_error
from realmctl.log import warn

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PIECE_BYTES = 4 * 2**20
WRITING_SUFFIX = ".writing"
"""Ending of the temporary name under which `write_file` writes."""
QUARANTINE = "quarantine"
"""Name of the folder to which damaged files are moved. They are reported, and never deleted silently."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of `lock_file` on a file system that has no locks, such as a Lustre or an NFS that was mounted without them."""
TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def lock_file(handle: int, shared: bool = False) -> None:
    """Lock an open file without waiting. Raises BlockingIOError when another holds it, OSError of `NO_LOCKS` where there are no locks."""
    if fcntl is None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def type_name(mode: int) -> str:
    """Return the type of a file with this `st_mode`, for messages: "a symbolic link"."""
    return TYPES.get(stat.S_IFMT(mode), "a regular file")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. The file type is checked before it is opened, and never blocks.

    Raises:
        InputError: `path` is a symbolic link, folder, named pipe, device or socket.
        ResourceError, AccessError: No file handle is left, no memory, or no permission. This is no OSError, because callers take one for damage.
        OSError: It does not exist or cannot be opened.
    """
    require_regular(path, path.lstat())
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        known = as_realmctl_error(error, path)
        raise known if isinstance(known, (ResourceError, AccessError)) else error from None
    try:
        require_regular(path, os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def require_regular(path: Path, status: os.stat_result) -> None:
    """Raise InputError unless `status` is that of a regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path} is {type_name(status.st_mode)}, where a regular file is expected. Restore the file, or make the "
            "artifact again."
        )


def read_small(path: Path, limit: int) -> bytes:
    """The bytes of a regular file.

    Raises:
        InputError: It is not a regular file, or it has more than `limit` bytes.
        ResourceError, AccessError: No file handle is left, no memory, no permission, or the disk failed. This is no OSError, because callers take one for damage.
        OSError: It does not exist or cannot be read.
    """
    with open_regular(path) as file:
        try:
            data = file.read(limit + 1)
        except OSError as error:
            known = as_realmctl_error(error, path)
            raise known if isinstance(known, (ResourceError, AccessError)) else error from None
    if len(data) > limit:
        raise InputError(f"{path} holds more than {limit} bytes, which is the limit for such a file. Restore it.")
    return data


class CheckedFile:
    """A new binary file, written from its beginning to its end. An existing file of that name is replaced.

    `close` compares size and checksum (CRC-32) of what is in the file with what was written. This detects a disk or
    driver that reports success for a write that did not happen.

    Args:
        path: The file. A symbolic or hard link of this name is removed first, so that its target is not changed.
        head: The first bytes. `close` can replace them by as many others.
    """

    def __init__(self, path: Path, head: bytes = b"") -> None:
        self.path, self._head = path, head
        path.unlink(missing_ok=True)
        self._file = io.BufferedWriter(_raw_file(path))
        self._file.write(head)
        self._size, self._checksum = len(head), 0

    def write(self, data: bytes) -> int:
        """Append `data` and return its length."""
        self._file.write(data)
        self._size += len(data)
        self._checksum = zlib.crc32(data, self._checksum)
        return len(data)

    def close(self, head: bytes | None = None) -> None:
        """Finish the file, with another `head` if one is given, and compare it with what was written.

        Raises:
            OSError: EIO, when the file does not hold what was written.
        """
        if head is not None:
            self._file.seek(0)
            self._file.write(head)
            self._head = head
        self._file.close()
        self._compare()

    def abandon(self) -> None:
        """Close the file without a check. For a write that failed."""
        self._file.close()

    def _compare(self) -> None:
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != self._size:
                raise not_as_written(self.path, f"it holds {size} bytes, and {self._size} were written")
            head, checksum = file.read(len(self._head)), 0
            while piece := file.read(PIECE_BYTES):
                checksum = zlib.crc32(piece, checksum)
        if head != self._head or checksum != self._checksum:
            raise not_as_written(self.path)


def not_as_written(path: Path, reason: str = "it does not hold the bytes that were written") -> OSError:
    """Return the error for a file that was read back and is not what was written."""
    return OSError(errno.EIO, f"{os.strerror(errno.EIO)} ({reason})", str(path))


def _raw_file(path: Path) -> io.RawIOBase:
    """The unbuffered file below a `CheckedFile`. Tests replace this function to lose writes."""
    return io.FileIO(path, "xb")


def sync(path: Path) -> None:
    """Flush a file or folder to the disk (fsync). A file system that cannot flush a folder says EINVAL, and then nothing can be done."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL or not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise
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


def write_file(path: Path, data: bytes, durable: bool = True, shared: bool = False) -> None:
    """Write a small file atomically: a reader sees the old content, or all of the new content.

    The order is: write a temporary file, read it back, fsync it, rename it, fsync the folder. If the last fsync
    fails, a file that did not exist before is removed again.

    durable: Whether the file must survive a power cut. Otherwise nothing is flushed.
    shared: Whether others may write the file at the same time. Each then has a temporary file of its own, and the last one wins.
    """
    own = f".{secrets.token_hex(4)}" if shared else ""
    temporary = path.with_name(path.name + own + WRITING_SUFFIX)
    try:
        file = CheckedFile(temporary)
        file.write(data)
        file.close()
        if durable:
            sync(temporary)
        existed = os.path.lexists(path)
        temporary.replace(path)
    except OSError:
        if shared:  # nobody writes a file of this name again
            temporary.unlink(missing_ok=True)
        raise
    if not durable:
        return
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


def share_as_folder(path: Path) -> None:
    """Let those read a file who may read its folder. safetensors makes files that only their owner may read.

    Do nothing on a file system without permissions.
    """
    with suppress(PermissionError):
        path.chmod(stat.S_IMODE(path.parent.stat().st_mode) & 0o444 | 0o200)


OUTPUT_OPTIONS = "--out of a stage, or --workspace"
"""How a user chooses the folder of an output, for messages of whatever command makes it."""


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
            f"Free some disk space, or choose a folder on another disk ({OUTPUT_OPTIONS})."
        )


def set_aside(path: Path, quarantine: Path, reason: str) -> None:
    """Move a damaged file or folder into the folder `quarantine`, whose parent must exist, and warn.

    Do nothing when `path` is gone: another process moved it, or the run has ended.
    """
    try:
        quarantine.mkdir(exist_ok=True)
        names = (quarantine / f"{path.name}-{number}" for number in itertools.count(1))
        target = next(name for name in names if not name.exists())
        path.rename(target)
    except FileNotFoundError:
        return
    warn(f"{reason} {path.name} was moved to {target}.")
