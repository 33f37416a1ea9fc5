"""List, show and verify artifacts: what `realmctl ls`, `show` and `verify` find. catalogue_text.py formats it for people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from realmctl.artifacts import unfinished
from realmctl.artifacts.artifact import Artifact, open_artifact, pinned_version, verify, versions_in
from realmctl.artifacts.file_kinds import kind_of_file
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.hashing import digest_file
from realmctl.artifacts.manifest import InputDigest, Manifest, SourceFile, is_artifact
from realmctl.artifacts.place import is_series, series_below
from realmctl.errors import AccessError, InputError, MismatchError

MAX_ANCESTORS = 10_000
"""Limit on the nodes of the tree that `show` returns."""


@dataclass(frozen=True)
class Version:
    """A version of a series: finished with its manifest, damaged or unreadable with its error, or unfinished with neither.

    bytes: size of all its files, with those of its parts; 0 unless it is finished.
    pinned: whether its series stands for it.
    unreadable: whether this user may not read it, so that it may be whole.
    """

    path: Path
    manifest: Manifest | None = None
    bytes: int = 0
    error: str = ""
    pinned: bool = False
    unreadable: bool = False

    @property
    def kind(self) -> str:
        """Kind of the artifact, or `damaged`, `unreadable` or `unfinished`."""
        if self.manifest:
            return self.manifest.kind
        return "unreadable" if self.unreadable else "damaged" if self.error else "unfinished"

    def json(self) -> dict[str, Any]:
        """What `ls --json` prints about it."""
        if self.manifest is None:
            error = {"error": self.error} if self.error else {}
            return {"path": str(self.path), "kind": self.kind, **error}
        keys = ("kind", "stage", "content", "metrics", "time", "seconds")
        return {
            "path": str(self.path),
            "bytes": self.bytes,
            "pinned": self.pinned,
            **{key: getattr(self.manifest, key) for key in keys},
        }


@dataclass(frozen=True)
class Ancestor:
    """An input of an artifact. `path`: of the artifact, if it is near. `files`: of a source. `inputs`: its own inputs."""

    field: str
    content: InputDigest
    path: str | None
    files: Sequence[SourceFile]
    inputs: Sequence[Ancestor]


@dataclass(frozen=True)
class Shown:
    """An artifact and its ancestors. Those in the workspace or beside the artifact have a path."""

    path: Path
    manifest: Manifest
    ancestors: Sequence[Ancestor]

    def json(self) -> dict[str, Any]:
        """What `show --json` prints."""
        ancestors = [asdict(ancestor) for ancestor in self.ancestors]
        return {"path": str(self.path), "manifest": self.manifest.table(), "ancestors": ancestors}


@dataclass(frozen=True)
class ShownFile:
    """A file: its size and format, and the artifact that it belongs to.

    matches: whether the bytes are those that the artifact was committed with; None for a file outside, and for a manifest.
    """

    path: Path
    bytes: int
    format: str
    artifact: Artifact | None = None
    matches: bool | None = None

    def json(self) -> dict[str, Any]:
        """What `show --json` prints."""
        value: dict[str, Any] = {"path": str(self.path), "bytes": self.bytes, "format": self.format}
        if self.artifact:
            value |= {"artifact": str(self.artifact.path), "kind": self.artifact.kind}
        return value if self.matches is None else {**value, "matches": self.matches}


@dataclass(frozen=True)
class Verified:
    """An artifact whose hashes were all recomputed. bytes: what was hashed."""

    path: str
    kind: str
    content: str
    bytes: int


def summary(artifact: Artifact) -> dict[str, Any]:
    """Return what `--json` prints about an artifact that was made."""
    keys = ("kind", "stage", "content", "recipe", "metrics", "seconds")
    return {"path": str(artifact.path), **{key: getattr(artifact.manifest, key) for key in keys}}


def in_workspace(path: Path, workspace: Path) -> Path:
    """Return `path` if it exists, else the series of that name in the workspace if there is one, else `path`."""
    inside = workspace / path
    return inside if not path.exists() and inside.exists() else path


def listing(folder: Path) -> list[Version]:
    """Return each version of each series in `folder`, or of the series `folder`, the newest of a series last; the unfinished ones after all.

    Raises:
        InputError: It is no folder that may hold series.
    """
    require_folder(folder)
    found, closed = [], list[Path]()
    for series in series_in(folder, closed):
        pinned = pinned_version(series)
        for path in versions_in(series):
            try:
                artifact = open_artifact(path)
                found.append(Version(path, artifact.manifest, artifact.total_bytes(), pinned=path == pinned))
            except (InputError, MismatchError, AccessError) as error:
                found.append(Version(path, error=str(error), unreadable=isinstance(error, AccessError)))
    found += [Version(partial) for series in series_in(folder) for partial in unfinished.partial_folders(series)]
    return found + [Version(path, error=f"{path}: this user may not list it.", unreadable=True) for path in closed]


def require_folder(folder: Path) -> None:
    """Raise InputError unless `folder` may be a workspace or a series: it exists, and is neither a file nor an artifact."""
    if not os.path.lexists(folder):
        raise InputError(f"{folder} does not exist (looked from {Path.cwd()}). Name a workspace or a series.")
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder. Name a workspace or a series, or see what it is: realmctl show {folder}"
        )
    if is_artifact(folder) and not series_in(folder):
        raise InputError(
            f"{folder} is one artifact, and a workspace or a series holds several. Name the folder that it lies in, "
            f"{folder.parent}, or see the artifact: realmctl show {folder}"
        )


def versions_at(path: Path) -> list[Path]:
    """Return all versions of a folder of series, such as a workspace, and the folders in it that cannot be listed; or else the path."""
    if is_artifact(path) or not series_below(path):
        return [path]
    closed = list[Path]()
    found = [version for series in series_in(path, closed) for version in versions_in(series)]
    return [*found, *closed] or [path]


def series_in(folder: Path, closed: list[Path] | None = None) -> list[Path]:
    """Return the folder itself if it is a series, and the series in it. `closed`: see `series_below`."""
    return [*([folder] if is_series(folder) else []), *series_below(folder, closed=closed)]


def show(path: Path, workspace: Path) -> Shown:
    """Return an artifact's manifest and its ancestors."""
    artifact = open_artifact(path)
    known, count = near(artifact, workspace), 0

    def below(manifest: Manifest, above: frozenset[Path]) -> list[Ancestor]:
        """The nodes below an artifact. `above`: those between the root and it, which are not followed a second time."""
        nonlocal count
        nodes = []
        for field, content in manifest.inputs.items():
            if (count := count + 1) > MAX_ANCESTORS:
                raise InputError(
                    f"More than {MAX_ANCESTORS} ancestors: they are not shown. Remove artifacts that you do not trust."
                )
            made = known.get(content) if isinstance(content, str) else None
            inputs = below(made.manifest, above | {made.path}) if made and made.path not in above else []
            files = manifest.sources.get(field, [])
            nodes.append(Ancestor(field, content, str(made.path) if made else None, files, inputs))
        return nodes

    return Shown(artifact.path, artifact.manifest, below(artifact.manifest, frozenset({artifact.path})))


def show_file(path: Path) -> ShownFile:
    """Return what a file is."""
    size, kind = path.stat().st_size, kind_of_file(path)
    folder = next((folder for folder in (*path.parents, *path.absolute().parents) if is_artifact(folder)), None)
    if folder is None:
        return ShownFile(path, size, kind)
    artifact, name = open_artifact(folder), str(path.absolute().relative_to(folder.absolute()))
    if name == MANIFEST:
        return ShownFile(path, size, kind, artifact)
    entry = artifact.manifest.files.get(name)
    return ShownFile(path, size, kind, artifact, entry is not None and digest_file(path) == entry.sha256)


def near(artifact: Artifact, workspace: Path) -> Mapping[str, Artifact]:
    """Return {content hash: artifact} of the workspace and of the folder of this artifact's series, with all parts."""
    folders = {
        artifact.path.absolute().parent.parent: artifact.path.parent.parent,
        workspace.absolute(): workspace,
    }
    return {one.content: one for folder in folders.values() if folder.is_dir() for one in _within(folder)}


def _within(folder: Path) -> Iterator[Artifact]:
    for version in listing(folder):
        if version.manifest:
            artifact = open_artifact(version.path)
            yield from artifact.parts()
            yield artifact


def verify_path(path: Path) -> Verified:
    """Recompute every hash of one artifact. Raises InputError with the name of the first damaged file."""
    artifact = open_artifact(path)
    return Verified(str(artifact.path), artifact.kind, artifact.content, verify(artifact))
