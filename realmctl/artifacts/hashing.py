"""SHA-256 of JSON values, files and folders, and JSON files that carry their own hash, the seal."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from realmctl.artifacts.disk import PIECE_BYTES, open_regular, read_small, type_name, write_file
from realmctl.artifacts.folder import MANIFEST, RECIPE
from realmctl.errors import AccessError, InputError

MAX_SEALED_BYTES = 16 * 2**20


def digest(value: object) -> str:
    """SHA-256 of a JSON value in canonical form (sorted keys, ASCII, no spaces, no NaN)."""
    return _digest(value, allow_nan=False)


def _digest(value: object, allow_nan: bool) -> str:
    text = json.dumps(value, sort_keys=True, allow_nan=allow_nan, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def seal_of(table: Mapping[str, object]) -> str:
    """SHA-256 of everything in a table but its seal. Keys of tables must be strings; NaN, which a metric may be, is allowed."""
    return _digest({key: value for key, value in table.items() if key != "seal"}, allow_nan=True)


def sealed(table: Mapping[str, object]) -> dict[str, Any]:
    """The table with its seal as the last entry."""
    return {**{key: value for key, value in table.items() if key != "seal"}, "seal": seal_of(table)}


def write_sealed(path: Path, table: Mapping[str, object]) -> None:
    """Write a JSON table with its seal, atomically and durably."""
    write_file(path, json.dumps(sealed(table)).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the table that `write_sealed` wrote, without its seal.

    Raises:
        InputError: It is not a regular file, or it has more than MAX_SEALED_BYTES.
        OSError: It cannot be read.
        ValueError: The file is damaged: it is not a JSON table, or the seal does not hold.
    """
    table = json.loads(read_small(path, MAX_SEALED_BYTES))
    if not isinstance(table, dict) or table.pop("seal", None) != seal_of(table):
        raise ValueError("its SHA-256 does not match its content")
    return table


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes. A symbolic link is followed."""
    with path.open("rb") as file:
        return _digest_stream(file)


def digest_regular(path: Path) -> str:
    """SHA-256 of a regular file's bytes. Raises InputError for a symbolic link, named pipe or device."""
    with open_regular(path) as file:
        return _digest_stream(file)


def _digest_stream(file: BinaryIO) -> str:
    sha = hashlib.sha256()
    while piece := file.read(PIECE_BYTES):
        sha.update(piece)
    return sha.hexdigest()


def digest_source(path: Path) -> str:
    """SHA-256 of a file or folder that is not an artifact. A folder's hash covers its files and their relative names.

    What cannot be read in a folder counts by its name and the reason; whoever reads the folder refuses it, or leaves it out.

    Raises InputError when `path` does not exist.
    """
    if path.is_file():
        return digest_file(path)
    if not path.is_dir():
        raise InputError(f"{path} does not exist (looked from {Path.cwd()}). Check the spelling of the path.")
    return digest({str(entry.relative_to(path)): why or digest_file(entry) for entry, why in entries_below(path)})


def files_below(folder: Path) -> Iterator[Path]:
    """Every file below `folder` in sorted order. Hidden files and folders are left out; links are followed.

    Raises InputError for what cannot be read; see `entries_below`.
    """
    for entry, why in entries_below(folder):
        if why:
            raise unread(entry, why)
        yield entry


def unread(entry: Path, why: str) -> InputError:
    """The error for what `entries_below` found in a folder that cannot be read."""
    return InputError(
        f"{entry} is {why}. In a folder only files and folders are read. Remove it, or restore what it should be."
    )


def entries_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below `folder` as `files_below` has them, and what cannot be read, each with the reason; empty for a file.

    Series of artifacts below it are left out: a workspace may lie in the folder of the documents. What cannot be read is a link that leads nowhere or to a folder above it, a named pipe, a socket or a device, and what this user may not read.
    """
    return _entries_below(folder, frozenset())


def _entries_below(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[tuple[Path, str]]:
    """`above`: device and inode of the folders that are walked through."""
    status = folder.stat()
    here = (status.st_dev, status.st_ino)
    if here in above:
        yield folder, "a link to a folder that it lies in"
        return
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):
                raise
            yield entry, "a link that leads nowhere"
            continue
        is_folder = stat.S_ISDIR(mode)
        if not is_folder and not stat.S_ISREG(mode):
            yield entry, type_name(mode)
        elif not os.access(entry, os.R_OK | (os.X_OK if is_folder else 0)):
            yield entry, "what this user may not read"
        elif is_folder and _is_series(entry):
            continue
        elif is_folder:
            yield from _entries_below(entry, above | {here})
        else:
            yield entry, ""


def _is_series(folder: Path) -> bool:
    """Whether a folder holds versions that realmctl wrote, or unfinished ones. A folder v1 with a manifest.json of another program is none."""
    for version in folder.glob("v[1-9]*"):
        name, _, rest = version.name.partition(".")
        if not name[1:].isdecimal() or rest not in ("", "partial"):
            continue
        if is_sealed(version / MANIFEST) or is_sealed(version / RECIPE):
            return True
    return False


def is_sealed(path: Path) -> bool:
    """Whether a file is a description that realmctl wrote, valid or not. Other programs have a manifest.json too."""
    try:
        return "seal" in json.loads(read_small(path, MAX_SEALED_BYTES))
    except (OSError, ValueError, TypeError, RecursionError, InputError, AccessError):
        return False
