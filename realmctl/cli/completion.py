"""What the shell completes beyond names of commands and options: artifacts of the workspace, presets, and other choices.

A completion never fails and never prints: a folder that cannot be read has no artifacts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer

from realmctl.artifacts import Artifact, open_artifact, version_numbers
from realmctl.errors import RealmctlError

Completion = Callable[[typer.Context, str], list[tuple[str, str]]]
"""Takes the context and the beginning of a value. Returns (value, help) pairs."""
MAX_FOLDERS = 1000
"""Folders of the workspace that are looked at."""


def artifacts(*kinds: str) -> Completion:
    """Return a completion of the workspace's series, and of the versions of a series once its name is written.

    Args:
        kinds: Accepted kinds; none: all. An artifact with a part of such a kind is offered too.
    """

    def complete(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        workspace = context.params.get("workspace") or os.environ.get("REALMCTL_WORKSPACE") or "artifacts"
        try:
            found = list(_offered(Path(workspace), incomplete, kinds))
        except (RealmctlError, OSError, ValueError):
            return []
        return [(path, text) for path, text in found if path.startswith(incomplete)]

    return complete


def choices(names: Callable[[], Sequence[str]]) -> Completion:
    """Return a completion of the names that `names` returns."""

    def complete(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        return [(name, "") for name in names() if name.startswith(incomplete)]

    return complete


def _offered(workspace: Path, incomplete: str, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    written = Path(incomplete) if incomplete else workspace
    if numbers := version_numbers(written):
        folders = [written / f"v{number}" for number in numbers]
    else:
        folders = sorted(path for path in workspace.iterdir() if path.is_dir())[:MAX_FOLDERS]
    for folder in folders:
        try:
            artifact = open_artifact(folder)
        except RealmctlError:
            continue
        if not kinds or not _kinds_of(artifact).isdisjoint(kinds):
            yield str(folder), f"{artifact.kind}, {artifact.path.name}"


def _kinds_of(artifact: Artifact) -> set[str]:
    return {artifact.kind, *(part.kind for part in artifact.parts())}
