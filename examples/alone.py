"""A folder that one process at a time works in, so that scripts can measure several things at once in one workspace."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make the folder, and wait until no other process is in here with it. The kernel lets the next one in when a process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
