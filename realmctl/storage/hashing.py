"""Names by content: canonical JSON, files and folders to SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from realmctl.errors import InputError

CHUNK = 4 * 2**20


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form (sorted keys, ASCII, no spaces, no NaN)."""
    text = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, read in 4 MiB pieces."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            sha.update(piece)
    return sha.hexdigest()


def digest_source(path: Path) -> str:
    """Content of an outside file or folder. A folder's is that of its files with their relative names.

    Raises InputError when there is nothing at `path`.
    """
    if path.is_file():
        return digest_file(path)
    if not path.is_dir():
        raise InputError(f"{path} does not exist (looked from {Path.cwd()}). Check the spelling of the path.")
    return digest({str(file.relative_to(path)): digest_file(file) for file in files_below(path)})


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file below `folder` in sorted order, but hidden ones and what links to folders hold."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from files_below(entry)
        elif entry.is_file():
            yield entry
