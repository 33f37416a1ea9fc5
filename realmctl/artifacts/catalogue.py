"""List, show and verify artifacts. The functions return JSON values, which catalogue_text.py formats for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import unfinished
from realmctl.artifacts.artifact import Artifact, open_artifact, verify, version_numbers
from realmctl.artifacts.catalogue_text import listing_text, shown_file_text, shown_text, size_text, verified_text
from realmctl.artifacts.file_kinds import kind_of_file
from realmctl.artifacts.hashing import digest_file
from realmctl.artifacts.manifest import is_artifact
from realmctl.artifacts.manifest_schema import MANIFEST
from realmctl.errors import InputError, MismatchError, RealmctlError

MAX_ANCESTORS = 10_000
"""Limit on the nodes of the tree that `shown` returns."""

__all__ = [
    "in_workspace",
    "listing",
    "listing_text",
    "near",
    "predictions_of",
    "shown",
    "shown_file",
    "shown_file_text",
    "shown_text",
    "size_text",
    "summary",
    "verified",
    "verified_text",
    "versions_at",
]


def summary(artifact: Artifact) -> dict[str, Any]:
    """Return what `--json` prints about an artifact."""
    keys = ("kind", "stage", "content", "recipe", "metrics", "seconds")
    return {"path": str(artifact.path), **{key: artifact.manifest[key] for key in keys}}


def in_workspace(path: Path, workspace: Path) -> Path:
    """Return `path` if it exists, else the series of that name in the workspace if there is one, else `path`."""
    inside = workspace / path
    return inside if not path.exists() and inside.exists() else path


def listing(folder: Path) -> list[dict[str, Any]]:
    """Return an entry for each version of each series in `folder`, or of the series `folder`.

    A damaged version has the kind `damaged` and its error; an unfinished one has the kind `unfinished`.

    Raises:
        InputError: The folder does not exist.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder} does not exist (looked from {Path.cwd()}). Name a folder of series, or run a stage."
        )
    finished = [_entry(path / f"v{number}") for path in _series(folder) for number in version_numbers(path)]
    partials = [partial for path in _series(folder) for partial in unfinished.partial_folders(path)]
    return finished + [{"path": str(partial), "kind": "unfinished"} for partial in partials]


def versions_at(path: Path) -> list[Path]:
    """Return all versions of a folder of series, such as a workspace; of any other path the path itself."""
    if not path.is_dir() or is_artifact(path) or _series(path) == [path]:
        return [path]
    return [series / f"v{number}" for series in _series(path) for number in version_numbers(series)] or [path]


def _series(folder: Path) -> list[Path]:
    if version_numbers(folder) or unfinished.partial_folders(folder):
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _entry(path: Path) -> dict[str, Any]:
    try:
        artifact = open_artifact(path)
        size = artifact.total_bytes()
    except (RealmctlError, OSError) as error:
        return {"path": str(path), "kind": "damaged", "error": str(error)}
    keys = ("kind", "stage", "content", "metrics", "time", "seconds")
    return {"path": str(path), "bytes": size, **{key: artifact.manifest[key] for key in keys}}


def shown(path: Path, workspace: Path) -> dict[str, Any]:
    """Return an artifact's manifest and its ancestors. Ancestors in the workspace or beside the artifact have a path."""
    artifact = open_artifact(path)
    ancestors = _AncestorTree(near(artifact, workspace)).of(artifact)
    return {"path": str(artifact.path), "manifest": dict(artifact.manifest), "ancestors": ancestors}


def shown_file(path: Path) -> dict[str, Any]:
    """Return what a file is: its format and size, and the artifact it belongs to.

    `matches` says whether the bytes are those that the artifact was committed with.
    """
    value: dict[str, Any] = {"path": str(path), "bytes": path.stat().st_size, "format": kind_of_file(path)}
    folder = next((folder for folder in (*path.parents, *path.absolute().parents) if is_artifact(folder)), None)
    if folder is None:
        return value
    artifact, name = open_artifact(folder), str(path.absolute().relative_to(folder.absolute()))
    value |= {"artifact": str(artifact.path), "kind": artifact.kind}
    if name == MANIFEST:
        return value
    entry = artifact.manifest["files"].get(name)
    return {**value, "matches": entry is not None and digest_file(path) == entry["sha256"]}


def near(artifact: Artifact, workspace: Path) -> dict[str, Artifact]:
    """Return {content hash: artifact} of the workspace and of the folder of this artifact's series, with all parts."""
    folders = {
        artifact.path.absolute().parent.parent: artifact.path.parent.parent,
        workspace.absolute(): workspace,
    }
    return {one.content: one for folder in folders.values() if folder.is_dir() for one in _within(folder)}


def _within(folder: Path) -> Iterator[Artifact]:
    for entry in listing(folder):
        if "content" in entry:
            artifact = open_artifact(entry["path"])
            yield from artifact.parts()
            yield artifact


class _AncestorTree:
    """The inputs of an artifact, their inputs, and so on, as far as they are in `known`."""

    def __init__(self, known: Mapping[str, Artifact]) -> None:
        self._known, self._nodes = known, 0

    def of(self, artifact: Artifact, above: frozenset[Path] = frozenset()) -> list[dict[str, Any]]:
        """Return the nodes below `artifact`.

        `above`: the artifacts between the root and `artifact`, which are not followed a second time.
        """
        above |= {artifact.path}
        return [self._node(artifact, field, above) for field in artifact.manifest["inputs"]]

    def _node(self, artifact: Artifact, field: str, above: frozenset[Path]) -> dict[str, Any]:
        self._nodes += 1
        if self._nodes > MAX_ANCESTORS:
            raise InputError(
                f"More than {MAX_ANCESTORS} ancestors: they are not shown. Remove artifacts that you do not trust."
            )
        content = artifact.manifest["inputs"][field]
        made = self._known.get(content) if isinstance(content, str) else None
        inputs = self.of(made, above) if made and made.path not in above else []
        files = artifact.manifest["sources"].get(field, [])
        return {
            "field": field,
            "content": content,
            "path": str(made.path) if made else None,
            "files": files,
            "inputs": inputs,
        }


def verified(path: Path) -> dict[str, Any]:
    """Recompute every hash of one artifact. Raises InputError with the name of the first damaged file."""
    artifact = open_artifact(path)
    size = verify(artifact)
    return {"path": str(artifact.path), "kind": artifact.kind, "content": artifact.content, "bytes": size}


def predictions_of(path: Path) -> Path:
    """Return a file of predictions: `path` itself, or the file of the scores artifact at `path`.

    Raises:
        MismatchError: The artifact is of another kind, or it has no predictions.
        InputError: The folder has no artifact.
    """
    if not path.is_dir():
        return path
    artifact = open_artifact(path)
    if artifact.kind != "scores" or not artifact.has("predictions.jsonl"):
        raise MismatchError(
            f"{artifact} has no predictions. Name the scores of a model that answers, or a file of predictions."
        )
    return artifact.file("predictions.jsonl")
