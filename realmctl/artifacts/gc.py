"""Delete the versions that nothing needs, safely beside readers and writers.

Kept are the newest and the pinned versions of each series, everything that they and unfinished runs need, what a process has open, what is
damaged, and what a link leads to: other workspaces may use it. The rest may be deleted.

An artifact needs what it was made from, and what that was made from. It does not need what it replaces, which is an ancestor of
its own kind or a former input: edited blocks do not need the blocks before the edit.

A version is locked before it is deleted, so that no process can open it any more. Then the workspace is read again: a run that
finished in between may need it. Only then it is moved out of the series by one rename, and its files are deleted.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts.artifact import VERSION_NAME, Artifact, open_artifact, pinned_version, version_numbers
from realmctl.artifacts.catalogue import series_in
from realmctl.artifacts.disk import sync
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.lease import try_exclusive
from realmctl.artifacts.manifest import FORMER, Origin, read_manifest
from realmctl.artifacts.unfinished import partial_folders, read_recipe
from realmctl.errors import AccessError, ConfigError, InputError, MismatchError

NEWEST, NEEDED, IN_USE, DAMAGED, LINKED = "newest", "needed", "in use", "damaged", "reached by a link"
PINNED = "pinned"
TRASH_NAME = re.compile(rf"\.{VERSION_NAME.pattern}\.deleted")
"""Name of a version while its files are being deleted."""
LOCKED_AT_ONCE = 200
"""Versions that are locked at the same time; each needs a file handle."""


@dataclass(frozen=True)
class VersionNeeds:
    """A committed version.

    Attributes:
        path: Its folder.
        contents: Content hashes of the version and of its parts.
        needs: Content hashes of everything that it and its parts were made from.
        size: Bytes of its files.
        problem: Why it cannot be read; empty if it can.
        pinned: Whether its series stands for it (`realmctl pin`).
        linked: Whether it or its series is a symbolic link in the workspace.
    """

    path: Path
    contents: frozenset[str]
    needs: frozenset[str]
    size: int
    problem: str = ""
    linked: bool = False
    pinned: bool = False


@dataclass(frozen=True)
class WorkspaceContents:
    """What a workspace holds: the versions of each series, oldest first, and the content hashes that unfinished runs need."""

    series: Sequence[Sequence[VersionNeeds]]
    needed_by_runs: frozenset[str]


@dataclass(frozen=True)
class Collected:
    """What `gc` found. deleted: whether `gone` was deleted, or may be. kept: {version: why}.

    Files that several versions share by hard links free space only with the last of them.
    """

    deleted: bool
    gone: Sequence[VersionNeeds]
    kept: Mapping[VersionNeeds, str]

    @property
    def bytes(self) -> int:
        """Sum of the sizes of `gone`."""
        return sum(version.size for version in self.gone)

    def json(self) -> dict[str, object]:
        """What `gc --json` prints."""
        return {
            "deleted": self.deleted,
            "bytes": self.bytes,
            "versions": [{"path": str(version.path), "bytes": version.size} for version in self.gone],
            "kept": [{"path": str(one.path), "bytes": one.size, "why": why} for one, why in self.kept.items()],
        }


def collect(folders: Sequence[Path], newest: int, delete: bool) -> Collected:
    """Find the versions that nothing needs, and delete them if `delete`.

    Args:
        folders: Workspaces or series. Artifacts elsewhere are not known, and what only they need is deleted.
        newest: How many versions of each series are kept in any case.
        delete: Whether to delete. Otherwise nothing is changed.

    Raises:
        ConfigError: `newest` is below 1.
        AccessError: A folder in them cannot be listed, or a version cannot be read or deleted.
        InputError: A folder does not exist, or versions are to be deleted and one whose manifest cannot be read may need them.
    """
    if newest < 1:
        raise ConfigError(f"--keep {newest}: it must be at least 1: the newest version is always kept.")
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise InputError(f"{missing[0]} does not exist. Name a workspace or a series.")
    workspace = read_workspace(folders)
    if delete:  # what a `gc` that was killed had moved out of a series
        for folder in {version.path.parent for series in workspace.series for version in series}:
            for trash in folder.iterdir():
                if TRASH_NAME.fullmatch(trash.name):
                    shutil.rmtree(trash, ignore_errors=True)
    in_use: set[Path] = set()
    gone: list[VersionNeeds] = []
    candidates = _deletable(workspace, newest, in_use)
    if delete and candidates:
        for version in (version for series in workspace.series for version in series if version.problem):
            _require_manifest(version.path)
    for start in range(0, len(candidates), LOCKED_AT_ONCE):
        with ExitStack() as locks:
            batch = _locked(candidates[start : start + LOCKED_AT_ONCE], locks, in_use)
            current = read_workspace(folders, known=batch)
            free = {version.path for version in _deletable(current, newest, in_use)}
            gone += [version for version in batch if version.path in free]
            if delete:
                for path in (version.path for version in batch if version.path in free):
                    trash = path.with_name(f".{path.name}.deleted")
                    path.rename(trash)
                    sync(path.parent)
                    shutil.rmtree(trash)
    why = reasons_to_keep(workspace, newest, in_use)
    removed = {version.path for version in gone}
    versions = [version for series in workspace.series for version in series]
    kept = {one: why.get(one.path, IN_USE) for one in versions if one.path not in removed}
    return Collected(delete, gone, kept)


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


def read_workspace(folders: Iterable[Path], known: Sequence[VersionNeeds] = ()) -> WorkspaceContents:
    """Read the manifests of all series in `folders`. A folder may also be a series itself.

    known: Versions that are not read, because the process has locked them and could not open them.
    """
    closed = list[Path]()
    named = [series for folder in folders for series in series_in(folder, closed)]
    if closed:
        raise AccessError(
            f"{closed[0]}: this user may not list it, so what it needs is not known. Let a user run gc who may."
        )
    within = [Path(os.path.realpath(folder)) for folder in folders]
    places: dict[Path, Path] = {}
    for series in sorted(
        named, key=lambda series: series.is_symlink()
    ):  # so that a link is a second name of its target
        places.setdefault(Path(os.path.realpath(series)), series)
    found = {version.path: version for version in known}
    paths = [[series / f"v{number}" for number in version_numbers(series)] for series in places.values()]
    origins = [_started(partial) for series in places for partial in partial_folders(series)]
    linked = [not {place, *place.parents} & set(within) for place in places]
    return WorkspaceContents(
        [
            [found.get(path) or _version(path, link, path == pin) for path in series]
            for series, link, pin in zip(paths, linked, map(pinned_version, places.values()), strict=True)
        ],
        frozenset(content for origin in origins if origin for content in _named(origin)),
    )


def reasons_to_keep(workspace: WorkspaceContents, newest: int, in_use: Collection[Path] = ()) -> dict[Path, str]:
    """Return {version: why it is kept} for the versions that are kept. The others may be deleted.

    Args:
        workspace: All versions.
        newest: How many versions of each series are kept in any case, the newest ones. Damaged ones do not count.
        in_use: Versions that a process has open.
    """
    versions = [version for series in workspace.series for version in series]
    why = {version.path: DAMAGED for version in versions if version.problem}
    why |= {version.path: LINKED for version in versions if version.linked}
    why |= {version.path: PINNED for version in versions if version.pinned}
    why |= {version.path: IN_USE for version in versions if version.path in in_use}
    for series in workspace.series:
        readable = [version for version in series if not version.problem]
        why |= {version.path: NEWEST for version in readable[max(0, len(readable) - newest) :]}
    holders: dict[str, list[VersionNeeds]] = {}
    for version in versions:
        for content in version.contents:
            holders.setdefault(content, []).append(version)
    wanted = [*workspace.needed_by_runs, *(need for one in versions if one.path in why for need in one.needs)]
    while wanted:
        for version in holders.get(wanted.pop(), []):
            if version.path not in why:
                why[version.path] = NEEDED
                wanted += version.needs
    return why


def _version(path: Path, linked: bool, pinned: bool) -> VersionNeeds:
    linked = linked or path.is_symlink()
    try:
        artifact = open_artifact(path)
    except (InputError, MismatchError) as error:
        return VersionNeeds(path, frozenset(), _needs_of_damaged(path), 0, str(error), linked, pinned)
    family = [*_parts_of(artifact), artifact]
    needs = frozenset(content for one in family for content in _needs(one.manifest))
    return VersionNeeds(
        path, frozenset(one.content for one in family), needs, artifact.total_bytes(), linked=linked, pinned=pinned
    )


def _needs_of_damaged(path: Path) -> frozenset[str]:
    """What the manifest says that can be read: the file that is damaged may be restored."""
    try:
        return frozenset(_needs(read_manifest(path)))
    except (InputError, MismatchError):
        return frozenset()


def _require_manifest(path: Path) -> None:
    """Raise InputError for a version whose manifest cannot be read: what it needs is not known."""
    try:
        read_manifest(path)
    except (InputError, MismatchError) as error:
        raise InputError(
            f"Nothing was deleted, because what {path} needs is not known: {error} Or remove it (rm -r {path})."
        ) from None


def _parts_of(artifact: Artifact) -> list[Artifact]:
    return [one for part in artifact.parts() for one in (*_parts_of(part), part)]


def _started(partial: Path) -> Origin | None:
    """Return what an unfinished run, or one that was killed before it was committed, is made from; None if it is damaged."""
    try:
        if (partial / MANIFEST).is_file():
            return read_manifest(partial)
        started = read_recipe(partial)
    except (InputError, MismatchError):
        return None
    return started.origin if started else None


def _named(origin: Origin) -> set[str]:
    """Content hashes of the inputs and ancestors."""
    return {value for value in (*origin.inputs.values(), *origin.lineage.values()) if isinstance(value, str)}


def _needs(origin: Origin) -> set[str]:
    """Content hashes of what an artifact needs: inputs and ancestors, but for former ones and the one of its own kind."""
    former = {
        content for name, content in origin.inputs.items() if name.startswith(FORMER) and isinstance(content, str)
    }
    own = {origin.lineage[origin.kind]} if origin.kind in origin.lineage else set()
    return (_named(origin) - former | set(origin.lineage.values())) - own
