"""An artifact is a folder that exists only once whole, and says what it was made from.

    w/blocks/          a series: one kind, many versions
      v1/              committed: manifest.json and the files it names
      v2.partial/      being written; nobody reads it

manifest.py says what is written, writer.py commits, series.py holds the lock and the numbering.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realmctl.artifacts.manifest import MANIFEST, names_below, read_manifest
from realmctl.errors import InputError, MismatchError
from realmctl.storage.hashing import digest_file

VERSION_NAME = re.compile(r"v([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Artifact:
    """A committed artifact: `path` and its checked manifest. Open one with `open_artifact`."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """blocks, spans, encoder, retriever, embeddings, index, model, qa-model or scores."""
        return str(self.manifest["kind"])

    @property
    def content(self) -> str:
        """Hash of the files: the artifact's identity."""
        return str(self.manifest["content"])

    @property
    def recipe(self) -> str:
        """Hash of what it was made from."""
        return str(self.manifest["recipe"])

    @property
    def lineage(self) -> Mapping[str, str]:
        """{kind: content} of the artifacts it descends from."""
        return dict(self.manifest["lineage"])

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The numbers its stage returned."""
        return dict(self.manifest["metrics"])

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of its stage."""
        return dict(self.manifest["settings"])

    def file(self, name: str) -> Path:
        """Path of one of its files. Raises InputError when the manifest names no such file."""
        if name not in self.manifest["files"]:
            known = ", ".join(self.manifest["files"])
            raise InputError(f"{self} holds no file {name!r}; it has {known}.")
        return self.path / name

    def has(self, name: str) -> bool:
        """Whether it holds this file or part."""
        return name in self.manifest["files"] or name in self.manifest["parts"]

    def part(self, name: str) -> Artifact:
        """An artifact inside this one, such as a model's `retriever`."""
        if name not in self.manifest["parts"]:
            known = ", ".join(self.manifest["parts"]) or "none"
            raise MismatchError(f"{self} has no part {name!r}; it has {known}.")
        part = open_artifact(self.path / name)
        if part.content != self.manifest["parts"][name]:
            raise InputError(f"{part} is not the part that {self} was committed with. Restore it or make {self} again.")
        return part

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


def open_artifact(path: Path | str) -> Artifact:
    """Open a version, or the newest one of a series.

    Manifest, file set and sizes are checked here, bytes by `verify`.

    Raises InputError when there is none, or when it is not whole.
    """
    path = Path(path)
    if not (path / MANIFEST).is_file():
        path = newest_version(path)
    artifact = Artifact(path, read_manifest(path))
    odd = set(names_below(path, artifact.manifest["parts"])) ^ set(artifact.manifest["files"])
    if odd:
        names = ", ".join(sorted(odd)[:5])
        raise InputError(f"{artifact} is not whole: {names} missing from it or foreign to it. Make it again.")
    for name, entry in artifact.manifest["files"].items():
        size = (path / name).stat().st_size
        if size != entry["bytes"]:
            raise InputError(
                f"{path / name} has {size} bytes, its manifest says {entry['bytes']}. "
                f"Restore it or make {artifact} again."
            )
    return artifact


def newest_version(series: Path) -> Path:
    """Path of the newest committed version below `series`. Raises InputError when there is none."""
    numbers = version_numbers(series)
    if not numbers:
        what = "has no finished version" if series.is_dir() else "does not exist"
        raise InputError(f"{series} {what}. Run the stage that makes it first, or name another folder.")
    return series / f"v{numbers[-1]}"


def version_numbers(series: Path) -> list[int]:
    """Numbers of the committed versions, ascending."""
    if not series.is_dir():
        return []
    versions = (child for child in series.iterdir() if (child / MANIFEST).is_file())
    matches = (VERSION_NAME.fullmatch(child.name) for child in versions)
    return sorted(int(match[1]) for match in matches if match)


def verify(artifact: Artifact) -> int:
    """Recompute every hash, parts included, and return the bytes read.

    Raises InputError naming the first damaged file.
    """
    total = 0
    for name, entry in artifact.manifest["files"].items():
        path = artifact.path / name
        if digest_file(path) != entry["sha256"]:
            raise InputError(
                f"{path} is damaged: its SHA-256 is not the one in {artifact.path / MANIFEST}. "
                f"Restore it or make {artifact} again."
            )
        total += entry["bytes"]
    return total + sum(verify(artifact.part(name)) for name in artifact.manifest["parts"])
