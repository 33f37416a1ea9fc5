"""An artifact's folder: the names that may be in it, and its files, each looked at with lstat before anything is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from realmctl.artifacts.disk import WRITING_SUFFIX, require_regular, sync
from realmctl.errors import InputError

MANIFEST = "manifest.json"
RECIPE = "recipe.json"
SCRATCH_NAMES = (".scratch", "live")
LOCK, LAST, PINNED, NEWEST = ".lock", ".last", ".pinned", ".newest"
"""Files of a series: its lock, the highest number that was given, the name of the version that it stands for, and which is the newest again."""
RESERVED_NAMES = frozenset((MANIFEST, MANIFEST + WRITING_SUFFIX, RECIPE, *SCRATCH_NAMES))
"""Names at the top of an artifact's folder that no file or part may have."""
MAX_FILES = 100_000
MAX_COMPONENT_BYTES = 255
"""Limit on the name of one file or folder, in bytes; common file systems have this limit."""
MAX_NAME_BYTES = 1024
"""Limit on a relative name with its folders."""
MAX_NAME_DEPTH = 16
"""Limit on the components of a relative name."""
SHOWN_CHARACTERS = 80


def component_problem(name: str) -> str | None:
    """Why `name` may not be the name of one file or folder; None if it may."""
    if name in ("", ".", ".."):
        return "it is not a name"
    if "/" in name or "\\" in name:
        return "it has a slash or backslash"
    if not name.isprintable():
        return "it has characters that cannot be printed"
    if len(name.encode()) > MAX_COMPONENT_BYTES:
        return f"it is longer than {MAX_COMPONENT_BYTES} bytes"
    return None


def relative_problem(name: str) -> str | None:
    """Why `name` may not be the name of a file relative to an artifact's folder; None if it may."""
    components = name.split("/")
    if len(components) > MAX_NAME_DEPTH:
        return f"it has more than {MAX_NAME_DEPTH} components"
    problem = next(filter(None, map(component_problem, components)), None)
    if problem is None and len(name.encode()) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    return problem


def require_component(name: str) -> None:
    """Raise InputError unless `name` may be the name of one file or folder."""
    _require(name, component_problem(name))


def require_relative(name: str) -> None:
    """Raise InputError unless `name` may be the name of a file relative to an artifact's folder."""
    _require(name, relative_problem(name))


def shown(name: str) -> str:
    """A name for a message: quoted, escaped and cut."""
    return repr(name if len(name) <= SHOWN_CHARACTERS else name[:SHOWN_CHARACTERS] + "...")


def _require(name: str, problem: str | None) -> None:
    if problem:
        raise InputError(
            f"{shown(name)} may not be the name of a file in an artifact: {problem}. Names are relative, and stay "
            "below the artifact's folder."
        )


def sizes_below(folder: Path, parts: Collection[str], unfinished: bool) -> dict[str, int]:
    """{name: bytes} of an artifact's own files: its manifest and the files of its parts are left out.

    Args:
        folder: The artifact's folder.
        parts: Names of the folders in it that are artifacts of their own.
        unfinished: Whether a run is not committed yet. Then scratch folders and the recipe are left out.

    Raises:
        InputError: A symbolic link, named pipe, device, socket or empty folder is in it; a part is missing; there are
            more files or deeper folders than an artifact may have; or it was deleted meanwhile.
    """
    skipped = {MANIFEST} | ({MANIFEST + WRITING_SUFFIX, RECIPE} if unfinished else set())
    sizes: dict[str, int] = {}
    missing = set(parts)
    try:
        for name, status in _entries(folder, "", parts, SCRATCH_NAMES if unfinished else ()):
            if name in missing and stat.S_ISDIR(status.st_mode):
                missing.discard(name)
            elif name not in skipped:
                require_regular(folder / name, status)
                sizes[name] = status.st_size
            if len(sizes) > MAX_FILES:
                raise InputError(
                    f"{folder} holds more than {MAX_FILES} files, which is the limit. It is not an artifact."
                )
    except FileNotFoundError as error:
        raise InputError(f"{error.filename} was deleted while it was opened. Name another version.") from None
    if missing:
        names = ", ".join(sorted(missing))
        raise InputError(
            f"{folder} is incomplete: its part {names} is missing. Restore it, or make the artifact again."
        )
    return sizes


def _entries(
    folder: Path, below: str, parts: Collection[str], scratch: Collection[str]
) -> Iterator[tuple[str, os.stat_result]]:
    """Relative name and lstat of every file below `folder`, and of the folders that are parts."""
    if below.count("/") >= MAX_NAME_DEPTH:
        raise InputError(f"{folder / below} lies deeper than {MAX_NAME_DEPTH} folders. It is not part of an artifact.")
    children = sorted(path.name for path in (folder / below).iterdir())
    if not children and below:
        raise InputError(f"{folder / below} is an empty folder, which no artifact holds. Remove it.")
    for child in children:
        name = below + child
        status = (folder / name).lstat()
        if not stat.S_ISDIR(status.st_mode) or name in parts:
            yield name, status
        elif name not in scratch:
            yield from _entries(folder, f"{name}/", parts, scratch)


def part_folders(folder: Path) -> list[Path]:
    """The folders directly below `folder` that have a manifest of their own."""
    return sorted(child for child in folder.iterdir() if child.name not in SCRATCH_NAMES and has_manifest(child))


def has_manifest(folder: Path) -> bool:
    """Whether `folder` contains a regular file with the name of a manifest."""
    try:
        return stat.S_ISREG((folder / MANIFEST).lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def remove_empty_folders(folder: Path) -> None:
    """Remove every folder below `folder` that holds nothing. Scratch folders are left as they are."""
    for below, folders, _ in os.walk(folder, topdown=False):
        top = Path(below).relative_to(folder).parts[:1]
        if top[:1] and top[0] in SCRATCH_NAMES:
            continue
        for name in folders:
            path = Path(below) / name
            scratch = not top and name in SCRATCH_NAMES
            if not scratch and not path.is_symlink() and not any(path.iterdir()):
                path.rmdir()


def sync_below(folder: Path) -> None:
    """Flush every file and folder of an artifact to the disk. Scratch folders are left out."""
    for below, folders, files in os.walk(folder):
        if Path(below) == folder:
            folders[:] = [name for name in folders if name not in SCRATCH_NAMES]
        for name in files:
            sync(Path(below) / name)
        sync(Path(below))


def write_protect(folder: Path) -> None:
    """Make every file below `folder` read-only, but for those that another user wrote before this one continued the run."""
    for below, _, files in os.walk(folder):
        for path in (Path(below) / name for name in files):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and mode & 0o222:
                with suppress(PermissionError):
                    path.chmod(stat.S_IMODE(mode) & ~0o222)
