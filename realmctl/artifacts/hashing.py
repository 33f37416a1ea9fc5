"""SHA-256 of JSON values, files and folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from realmctl.artifacts.regular_file import open_regular
from realmctl.errors import InputError

PIECE_BYTES = 4 * 2**20


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form (sorted keys, ASCII, no spaces, no NaN)."""
    text = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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

    Raises InputError when `path` does not exist.
    """
    if path.is_file():
        return digest_file(path)
    if not path.is_dir():
        raise InputError(f"{path} does not exist (looked from {Path.cwd()}). Check the spelling of the path.")
    return digest({str(file.relative_to(path)): digest_file(file) for file in files_below(path)})


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file below `folder` in sorted order.

    Hidden files and folders are left out. A link to a file counts as the file; a link to a folder is left out.
    """
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from files_below(entry)
        elif entry.is_file():
            yield entry
