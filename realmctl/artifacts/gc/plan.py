"""Decide which versions of a workspace nothing needs.

Kept are the newest versions of each series, everything that they and unfinished runs were made from, what a process has open,
and what cannot be read. The rest may be deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts.artifact import Artifact, open_artifact, version_numbers
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.manifest import Origin, read_manifest
from realmctl.artifacts.unfinished import partial_folders, read_recipe
from realmctl.errors import RealmctlError

NEWEST, NEEDED, IN_USE, DAMAGED = "newest", "needed", "in use", "damaged"


@dataclass(frozen=True)
class VersionNeeds:
    """A committed version.

    Attributes:
        path: Its folder.
        contents: Content hashes of the version and of its parts.
        needs: Content hashes of everything that it and its parts were made from.
        size: Bytes of its files.
        problem: Why it cannot be read; empty if it can.
    """

    path: Path
    contents: frozenset[str]
    needs: frozenset[str]
    size: int
    problem: str = ""


@dataclass(frozen=True)
class WorkspaceContents:
    """What a workspace holds: the versions of each series, oldest first, and the content hashes that unfinished runs need."""

    series: Sequence[Sequence[VersionNeeds]]
    needed_by_runs: frozenset[str]


def read_workspace(folders: Iterable[Path], known: Sequence[VersionNeeds] = ()) -> WorkspaceContents:
    """Read the manifests of all series in `folders`. A folder may also be a series itself.

    known: Versions that are not read, because the process has locked them and could not open them.
    """
    places = {series.absolute(): series for folder in folders for series in _series(folder)}.values()
    found = {version.path: version for version in known}
    paths = [[series / f"v{number}" for number in version_numbers(series)] for series in places]
    origins = [_started(partial) for series in places for partial in partial_folders(series)]
    return WorkspaceContents(
        [[found.get(path) or _version(path) for path in series] for series in paths],
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


def _series(folder: Path) -> list[Path]:
    if version_numbers(folder) or partial_folders(folder):
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())


def _version(path: Path) -> VersionNeeds:
    try:
        artifact = open_artifact(path)
        family = [*_parts_of(artifact), artifact]
        needs = frozenset(content for one in family for content in _named(one.manifest))
        return VersionNeeds(path, frozenset(one.content for one in family), needs, artifact.total_bytes())
    except (RealmctlError, OSError) as error:
        return VersionNeeds(path, frozenset(), frozenset(), 0, str(error))


def _parts_of(artifact: Artifact) -> list[Artifact]:
    return [one for part in artifact.parts() for one in (*_parts_of(part), part)]


def _started(partial: Path) -> Origin | None:
    """Return what an unfinished run, or one that was killed before it was committed, is made from; None if it is damaged."""
    try:
        if (partial / MANIFEST).is_file():
            return read_manifest(partial)
        started = read_recipe(partial)
    except RealmctlError:
        return None
    return started.origin if started else None


def _named(origin: Origin) -> list[str]:
    """Content hashes of the inputs and ancestors."""
    return [value for value in (*origin.inputs.values(), *origin.lineage.values()) if isinstance(value, str)]
