"""Reading files that another person may have made: regular files only, and never more bytes than a limit."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from realmctl.errors import InputError

TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def type_name(mode: int) -> str:
    """Return the type of a file with this `st_mode`, for messages: "a symbolic link"."""
    return TYPES.get(stat.S_IFMT(mode), "a regular file")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. The file type is checked before it is opened, and never blocks.

    Raises:
        InputError: `path` is a symbolic link, folder, named pipe, device or socket.
        OSError: It does not exist or cannot be opened.
    """
    require_regular(path, path.lstat())
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
        OSError: It does not exist or cannot be read.
    """
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{path} holds more than {limit} bytes, which is the limit for such a file. Restore it.")
    return data
