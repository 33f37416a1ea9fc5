"""Delete the versions that nothing needs, safely beside readers and writers.

A version is locked before it is deleted, so that no process can open it any more. Then the workspace is read again: a run that
finished in between may need it. Only then it is moved out of the series by one rename, and its files are deleted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from realmctl.artifacts.durable import sync
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.gc.plan import IN_USE, VersionNeeds, WorkspaceContents, read_workspace, reasons_to_keep
from realmctl.artifacts.lease import try_exclusive
from realmctl.errors import ConfigError, InputError

TRASH_SUFFIX = ".deleted"
"""Ending of the name of a version while its files are being deleted."""
LOCKED_AT_ONCE = 200
"""Versions that are locked at the same time; each needs a file handle."""


def collect(folders: Sequence[Path], newest: int, delete: bool) -> dict[str, Any]:
    """Find the versions that nothing needs, and delete them if `delete`.

    Args:
        folders: Workspaces or series. Artifacts elsewhere are not known, and what only they need is deleted.
        newest: How many versions of each series are kept in any case.
        delete: Whether to delete. Otherwise nothing is changed.

    Returns:
        `deleted`: whether versions were deleted, `versions`: {path, bytes} of those that may be or were deleted, `kept`:
        {path, bytes, why} of the others, `bytes`: sum of the sizes of the former. Files that several versions share by hard
        links free space only with the last of them.

    Raises:
        ConfigError: `newest` is below 1.
        InputError: A folder does not exist.
    """
    if newest < 1:
        raise ConfigError(f"--keep {newest}: use 1 or more. The newest version of a series is what its name means.")
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise InputError(f"{missing[0]} does not exist. Name a workspace or a series.")
    workspace = read_workspace(folders)
    if delete:
        _remove_left_over(workspace)
    in_use: set[Path] = set()
    gone: list[VersionNeeds] = []
    candidates = _deletable(workspace, newest, in_use)
    for start in range(0, len(candidates), LOCKED_AT_ONCE):
        with ExitStack() as locks:
            batch = _locked(candidates[start : start + LOCKED_AT_ONCE], locks, in_use)
            current = read_workspace(folders, known=batch)
            free = {version.path for version in _deletable(current, newest, in_use)}
            gone += [version for version in batch if version.path in free]
            if delete:
                for version in batch:
                    if version.path in free:
                        _delete(version.path)
    why = reasons_to_keep(workspace, newest, in_use)
    removed = {version.path for version in gone}
    kept = [version for series in workspace.series for version in series if version.path not in removed]
    return {
        "deleted": delete,
        "bytes": sum(version.size for version in gone),
        "versions": [{"path": str(version.path), "bytes": version.size} for version in gone],
        "kept": [
            {"path": str(version.path), "bytes": version.size, "why": why.get(version.path, IN_USE)} for version in kept
        ],
    }


def _deletable(workspace: WorkspaceContents, newest: int, in_use: set[Path]) -> list[VersionNeeds]:
    kept = reasons_to_keep(workspace, newest, in_use)
    return [version for series in workspace.series for version in series if version.path not in kept]


def _locked(versions: Sequence[VersionNeeds], locks: ExitStack, in_use: set[Path]) -> list[VersionNeeds]:
    """Lock versions until `locks` is closed. Those that a process has open are added to `in_use`."""
    found = []
    for version in versions:
        handle = try_exclusive(version.path / MANIFEST)
        if handle is None:
            in_use.add(version.path)
        else:
            locks.callback(os.close, handle)
            found.append(version)
    return found


def _delete(path: Path) -> None:
    trash = path.with_name(path.name + TRASH_SUFFIX)
    path.rename(trash)
    sync(path.parent)
    _delete_files(trash)


def _remove_left_over(workspace: WorkspaceContents) -> None:
    """Delete what a `gc` that was killed had moved out of a series."""
    for folder in {version.path.parent for series in workspace.series for version in series}:
        for trash in folder.glob(f"v*{TRASH_SUFFIX}"):
            _delete_files(trash)


def _delete_files(trash: Path) -> None:
    shutil.rmtree(trash, ignore_errors=True)
