"""Copy what an address names to this machine, within limits, and say what went wrong without secrets."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from realmctl.errors import NO_SPACE, InputError, RealmctlError, ResourceError, one_line

MAX_BYTES = 100 * 2**30
"""Bytes that are copied of one source at most."""
MAX_FILES = 100_000
MIN_FREE_BYTES = 2**30
"""What stays free of the disk."""
LOOK_BYTES = 2**26
"""How much is copied between two looks at the disk."""
PIECE_BYTES = 2**20
SLOWEST, PATIENCE = 2**10, 60.0
"""A server that sends fewer bytes a second than this is given up, but not within the first seconds."""
URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+")


def shown(address: str) -> str:
    """Return an address without what may be a secret: name and password, and the values of its query."""
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "…" if parts.query else "", ""))
    except ValueError:
        return address.partition("?")[0].rpartition("@")[2]


def without_secrets(text: str) -> str:
    """Return what a library says, with every address in it as `shown` has it."""
    return URL.sub(lambda match: shown(match[0]), text)


def file_name(path: str, otherwise: str) -> str:
    """Return a name for the copy of a file: the last part of its address, as text; `otherwise` where that is none."""
    name = (
        unquote(path.rstrip("/").rpartition("/")[2]).replace("/", "_").replace("\\", "_").replace("\0", "").lstrip(".")
    )
    return name.encode()[:200].decode(errors="ignore") or otherwise


@contextmanager
def told(address: str, advice: str) -> Iterator[None]:
    """Say of what a library raises which address it was about, and why, without secrets. `advice` is what to do."""
    try:
        yield
    except RealmctlError:
        raise
    except Exception as error:  # a network, a proxy or a server may raise anything
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise
        why = "there is nothing there" if isinstance(error, FileNotFoundError) else _reason(error)
        raise InputError(f"{address} cannot be read: {why}. {advice}") from None


def _reason(error: BaseException) -> str:
    answer = getattr(error, "response", None)  # of httpx, for the hub
    status = getattr(error, "status", None) or getattr(answer, "status_code", None)
    if isinstance(status, int):
        message = getattr(error, "message", "") if answer is None else getattr(answer, "reason_phrase", "")
        return f"the server answers {status} {message}".rstrip()
    return without_secrets(one_line(error)).rstrip(".")


class Copies:
    """Copies of one source in a folder. Together they hold no more than the limit and the disk allow.

    Args:
        address: the source, as it is shown.
        folder: an empty folder.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder
        self._copied = self._looked = 0
        self._begin = time.monotonic()

    def file(self, name: str, pieces: Iterable[bytes], size: int | None = None) -> Path:
        """Write pieces of at most a few MiB to a file `name` below the folder, and return it.

        size: how many bytes its source says that there are; None if it does not.

        Raises:
            InputError: there are fewer or more, or more than the limit.
            ResourceError: the disk would be full.
        """
        path, written = self.folder / name, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._require(size or 0)
        with path.open("xb") as file:
            for piece in pieces:
                written += len(piece)
                self._copied += len(piece)
                self._require(0)
                file.write(piece)
        if size is not None and written != size:
            raise InputError(f"{self.address} was cut: {written:,} of {size:,} bytes came. Run the command again.")
        return path

    def tree(self, sizes: Mapping[str, int], pieces: Callable[[str], Iterable[bytes]]) -> Path:
        """Copy files by their names below the source, and return the folder. `pieces` yields what a file holds.

        Raises InputError for more files than are read, and for a name that leads out of the folder.
        """
        if not sizes:
            raise InputError(f"{self.address} has no files. Check the address.")
        if len(sizes) > MAX_FILES:
            raise InputError(
                f"{self.address} has {len(sizes):,} files, and at most {MAX_FILES:,} are read. Name a part of it."
            )
        for name in sizes:
            parts = PurePosixPath(name).parts
            if "\0" in name or not parts or ".." in parts or parts[0] == "/" or len(name.encode()) > 1000:
                raise InputError(
                    f"{self.address} has a file named {name[:100]!r}, which is no name here. Rename it there."
                )
        self.folder.mkdir(exist_ok=True)
        self._require(sum(sizes.values()))
        for name, size in sizes.items():
            try:
                self.file(name, pieces(name), size)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                raise InputError(
                    f"{self.address} has {name!r} as a file and as a folder, or twice. Name a part of it."
                ) from None
        return self.folder

    def _require(self, coming: int) -> None:
        total = self._copied + coming
        if total > MAX_BYTES:
            raise InputError(
                f"{self.address} holds more than {MAX_BYTES / 2**30:,.4g} GiB, and no more is copied. Copy it by other means, and name the file."
            )
        if coming or total - self._looked > LOOK_BYTES:
            self._looked = total
            if (free := shutil.disk_usage(self.folder).free) < MIN_FREE_BYTES + coming:
                raise ResourceError(
                    f"{self.address}: {max(total, 1) / 2**20:,.1f} MiB are to be copied to {self.folder.parent}, which has only "
                    f"{free / 2**20:,.0f} MiB left. Set TMPDIR to a larger disk."
                )
        seconds = time.monotonic() - self._begin
        if seconds > PATIENCE and self._copied < SLOWEST * seconds:
            raise InputError(
                f"{self.address}: the server sent {self._copied:,} bytes in {seconds:.0f} seconds, and is given up. Try again later."
            )


def pieces_of(file: Any) -> Iterator[bytes]:
    """Yield what is left in an open file in pieces of at most 1 MiB, and close it."""
    with closing(file):
        while piece := file.read(PIECE_BYTES):
            yield piece
