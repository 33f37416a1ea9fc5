"""Delete the versions that nothing needs, safely beside readers and writers.

Kept are the newest and the pinned versions of each series, everything that they and unfinished runs need, what a process has open, what is
damaged, and what a link leads to: other workspaces may use it. The rest may be deleted.

Artifacts near the named folders are read too, and everything that they need is kept: those of the workspace that a named series lies
in, the series directly beside a named workspace, and those of `--workspace`. What artifacts elsewhere need cannot be known.

An artifact needs what it was made from, and what that was made from. It does not need what it replaces, which is an ancestor of
its own kind or a former input: edited blocks do not need the blocks before the edit.

An unfinished run that gave way to another one lies in the quarantine folder of its series. Nothing goes on with it, so it may be deleted too. What has
no readable recipe.json there is kept: it may be of someone else.

A version is locked before it is deleted, so that no process can open it any more. Then the workspace is read again: a run that
finished in between may need it. Only then it is moved out of the series by one rename, and its files are deleted.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts.artifact import VERSION_NAME, Artifact, open_artifact, pinned_version, versions_in
from realmctl.artifacts.catalogue import require_folder, series_in
from realmctl.artifacts.disk import QUARANTINE, sync
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.lease import try_exclusive
from realmctl.artifacts.manifest import FORMER, Origin, read_manifest
from realmctl.artifacts.place import MAX_SERIES_DEPTH, is_series, series_below
from realmctl.artifacts.unfinished import partial_folders, read_recipe
from realmctl.artifacts.writer import remove_folder
from realmctl.errors import AccessError, ConfigError, InputError, MismatchError

NEWEST, NEEDED, IN_USE, DAMAGED, LINKED = "newest", "needed", "in use", "damaged", "reached by a link"
PINNED, NEAR = "pinned", "not in a named folder"
TRASH_NAME = re.compile(rf"\.{VERSION_NAME.pattern}\.deleted")
"""Name of a version while its files are being deleted."""
ASIDE_NAME = re.compile(rf"{VERSION_NAME.pattern}\.partial-[0-9]+")
"""Name of an unfinished run that gave way to another one."""
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
        outside: LINKED if it or its series is a symbolic link in a named folder, NEAR if it lies near the named folders, else empty.
    """

    path: Path
    contents: frozenset[str]
    needs: frozenset[str]
    size: int
    problem: str = ""
    outside: str = ""
    pinned: bool = False


@dataclass(frozen=True)
class WorkspaceContents:
    """The versions of each series, oldest first, and {folder of an unfinished run: content hashes that it needs}."""

    series: Sequence[Sequence[VersionNeeds]]
    runs: Mapping[Path, frozenset[str]]


@dataclass(frozen=True)
class Collected:
    """What `gc` found. Files that several versions share by hard links free space only with the last of them.

    Attributes:
        deleted: Whether `gone` was deleted, or may be.
        gone: What nothing needs.
        aside: Unfinished runs that gave way to others.
        kept: {version: why}, of the named folders.
        needed_by: {version that is kept because it is needed: the versions and unfinished runs that need it}.
    """

    deleted: bool
    gone: Sequence[VersionNeeds]
    aside: Sequence[VersionNeeds]
    kept: Mapping[VersionNeeds, str]
    needed_by: Mapping[VersionNeeds, Sequence[Path]]

    @property
    def bytes(self) -> int:
        """Sum of the sizes of `gone` and `aside`."""
        return sum(version.size for version in (*self.gone, *self.aside))

    def json(self) -> dict[str, object]:
        """What `gc --json` prints."""
        return {
            "deleted": self.deleted,
            "bytes": self.bytes,
            "versions": [{"path": str(version.path), "bytes": version.size} for version in self.gone],
            "set_aside": [{"path": str(run.path), "bytes": run.size} for run in self.aside],
            "kept": [
                {
                    "path": str(one.path),
                    "bytes": one.size,
                    "why": why,
                    "needed_by": [str(path) for path in self.needed_by.get(one, ())],
                }
                for one, why in self.kept.items()
            ],
        }


def collect(folders: Sequence[Path], newest: int, delete: bool, workspace: Path | None = None) -> Collected:
    """Find the versions that nothing needs, and delete them if `delete`.

    Args:
        folders: Workspaces or series. Artifacts neither in nor near them are not known, and what only they need is deleted.
        newest: How many versions of each series are kept in any case.
        delete: Whether to delete. Otherwise nothing is changed.
        workspace: Counts as near, if it exists.

    Raises:
        ConfigError: `newest` is below 1.
        AccessError: A folder in them, or beside a named series, cannot be listed, or a version cannot be read or deleted.
        InputError: A folder does not exist, or versions are to be deleted and one whose manifest cannot be read may need them.
    """
    if newest < 1:
        raise ConfigError(f"--keep {newest}: it must be at least 1: the newest version is always kept.")
    for folder in folders:
        require_folder(folder)
    found = read_workspace(folders, workspace)
    if delete:  # what a `gc` that was killed had moved out of a series
        for folder in {version.path.parent for series in found.series for version in series if not version.outside}:
            for trash in folder.iterdir():
                if TRASH_NAME.fullmatch(trash.name):
                    shutil.rmtree(trash, ignore_errors=True)
    places = dict.fromkeys(
        Path(os.path.realpath(series)) for folder in folders for series in series_in(folder) if not series.is_symlink()
    )
    aside = [run for series in places for run in _set_aside(series)]
    for run in aside if delete else ():
        remove_folder(run.path)
        if not any(run.path.parent.iterdir()):
            run.path.parent.rmdir()
    in_use: set[Path] = set()
    gone: list[VersionNeeds] = []
    candidates = _deletable(found, newest, in_use)
    if delete and candidates:
        for version in (version for series in found.series for version in series if version.problem):
            _require_manifest(version.path)
    for start in range(0, len(candidates), LOCKED_AT_ONCE):
        with ExitStack() as locks:
            batch = _locked(candidates[start : start + LOCKED_AT_ONCE], locks, in_use)
            current = read_workspace(folders, workspace, known=batch)
            free = {version.path for version in _deletable(current, newest, in_use)}
            gone += [version for version in batch if version.path in free]
            if delete:
                for path in (version.path for version in batch if version.path in free):
                    trash = path.with_name(f".{path.name}.deleted")
                    path.rename(trash)
                    sync(path.parent)
                    remove_folder(trash)
    why = reasons_to_keep(found, newest, in_use)
    removed = {version.path for version in gone}
    staying = [version for series in found.series for version in series if version.path not in removed]
    kept = {one: why.get(one.path, IN_USE) for one in staying if one.outside != NEAR}
    users: dict[str, list[Path]] = {}
    for path, needs in [*((one.path, one.needs) for one in staying), *found.runs.items()]:
        for content in needs:
            users.setdefault(content, []).append(path)
    needed_by = {
        one: sorted({path for content in one.contents for path in users.get(content, ())} - {one.path})
        for one, reason in kept.items()
        if reason == NEEDED
    }
    return Collected(delete, gone, aside, kept, needed_by)


def _set_aside(series: Path) -> list[VersionNeeds]:
    """The unfinished runs in the quarantine folder of a series. A link is followed nowhere."""
    folder = series / QUARANTINE
    if folder.is_symlink() or not folder.is_dir():
        return []
    runs = [path for path in sorted(folder.iterdir()) if ASIDE_NAME.fullmatch(path.name) and not path.is_symlink()]
    return [
        VersionNeeds(
            path, frozenset(), frozenset(), sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
        )
        for path in runs
        if path.is_dir() and _started(path)
    ]


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


def read_workspace(
    folders: Sequence[Path], workspace: Path | None = None, known: Sequence[VersionNeeds] = ()
) -> WorkspaceContents:
    """Read the manifests of all series in `folders`, in `workspace` and beside the folders. A folder may also be a series itself.

    known: Versions that are not read, because the process has locked them and could not open them.
    """
    closed = list[Path]()
    named = [series for folder in folders for series in series_in(folder, closed)]
    near = series_in(workspace) if workspace else []
    near += [series for folder in folders for series in _beside(folder, closed)]
    if closed:
        raise AccessError(
            f"{closed[0]}: this user may not list it, so what it needs is not known. Let a user run gc who may."
        )
    named.sort(key=lambda series: series.is_symlink())  # so that a link is a second name of its target
    places: dict[Path, tuple[Path, str]] = {}
    within = {Path(os.path.realpath(folder)) for folder in folders}
    for series, outside in [*((one, LINKED) for one in named), *((one, NEAR) for one in near)]:
        place = Path(os.path.realpath(series))
        places.setdefault(place, (series, outside if within.isdisjoint((place, *place.parents)) else ""))
    found = {version.path: version for version in known}
    contents = []
    for series, outside in places.values():
        paths, pin = versions_in(series), pinned_version(series)
        contents.append([found.get(path) or _version(path, outside, path == pin) for path in paths])
    partials = [partial for series, _ in places.values() for partial in partial_folders(series)]
    runs = {partial: frozenset(_named(origin)) for partial in partials if (origin := _started(partial))}
    return WorkspaceContents(contents, runs)


def _beside(folder: Path, closed: list[Path]) -> list[Path]:
    """The series near a named folder: those of the workspace that a series lies in, and those directly beside a workspace.

    closed: Gets the folders of the workspace that this user may not list.
    """
    depth, unlisted = (MAX_SERIES_DEPTH, closed) if is_series(folder) else (1, None)
    found = []
    for parent in dict.fromkeys(Path(path(folder)).parent for path in (os.path.abspath, os.path.realpath)):
        try:
            found += series_below(parent, depth, unlisted)
        except PermissionError:
            if unlisted is not None:
                unlisted.append(parent)
    return found


def reasons_to_keep(workspace: WorkspaceContents, newest: int, in_use: Collection[Path] = ()) -> dict[Path, str]:
    """Return {version: why it is kept} for the versions that are kept. The others may be deleted.

    Args:
        workspace: All versions.
        newest: How many versions of each series are kept in any case, the newest ones. Damaged ones do not count.
        in_use: Versions that a process has open.
    """
    versions = [version for series in workspace.series for version in series]
    why = {version.path: DAMAGED for version in versions if version.problem}
    why |= {version.path: version.outside for version in versions if version.outside}
    why |= {version.path: PINNED for version in versions if version.pinned}
    why |= {version.path: IN_USE for version in versions if version.path in in_use}
    for series in workspace.series:
        readable = [version for version in series if not version.problem]
        why |= {version.path: NEWEST for version in readable[max(0, len(readable) - newest) :]}
    holders: dict[str, list[VersionNeeds]] = {}
    for version in versions:
        for content in version.contents:
            holders.setdefault(content, []).append(version)
    kept = [one.needs for one in versions if one.path in why]
    wanted = [need for needs in [*workspace.runs.values(), *kept] for need in needs]
    while wanted:
        for version in holders.get(wanted.pop(), []):
            if version.path not in why:
                why[version.path] = NEEDED
                wanted += version.needs
    return why


def _version(path: Path, outside: str, pinned: bool) -> VersionNeeds:
    outside = outside or (LINKED if path.is_symlink() else "")
    try:
        artifact = open_artifact(path)
    except (InputError, MismatchError) as error:
        return VersionNeeds(path, frozenset(), _needs_of_damaged(path), 0, str(error), outside, pinned)
    family = [*_parts_of(artifact), artifact]
    needs = frozenset(content for one in family for content in _needs(one.manifest))
    return VersionNeeds(
        path, frozenset(one.content for one in family), needs, artifact.total_bytes(), outside=outside, pinned=pinned
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
