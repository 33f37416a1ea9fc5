"""An artifact is a folder that exists only once whole, and says what it was made from.

    w/blocks/          a series: one kind, many versions
      v1/              committed: manifest.json and the files it names
      v2.partial/      being written; nobody reads it

The order of a commit is: data, fsync, manifest, fsync, rename, fsync of the parent. manifest.py says what is
written, series.py holds the lock and the numbering.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realmctl.errors import InputError, MismatchError
from realmctl.hashing import digest_file, files_below
from realmctl.manifest import (
    MANIFEST,
    RECIPE,
    SCRATCH_NAMES,
    Origin,
    names_below,
    read_manifest,
    sync,
    write_manifest,
)

__all__ = [
    "MANIFEST", "Artifact", "Origin", "Writer", "lineage_of", "newest_version", "open_artifact",
    "publish", "require_descent", "require_same_vocabulary", "require_titles", "sync", "verify", "version_numbers",
    "write_manifest", "writing",
]  # fmt: skip

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


@dataclass
class Writer:
    """An artifact being written: put files below `path`, numbers into `metrics`."""

    path: Path
    origin: Origin
    metrics: dict[str, Any] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        """Path for a new file of the artifact; its parent folders are made."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def scratch(self, name: str) -> Path:
        """A folder that outlives a kill but is no part of the artifact: checkpoints, finished ranges."""
        path = self.path / name if name in SCRATCH_NAMES else self.path / ".scratch" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def link(self, name: str, source: Path) -> Path:
        """Hard-link a file of another artifact into this one; copy where the file system cannot link."""
        target = self.file(name)
        target.unlink(missing_ok=True)
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)
        return target

    def copy_folder(self, name: str, source: Path) -> None:
        """Copy a small folder (a tokenizer) into the artifact."""
        for path in files_below(source):
            target = self.file(f"{name}/{path.relative_to(source)}")
            target.unlink(missing_ok=True)
            shutil.copyfile(path, target)

    def adopt(self, name: str, part: Artifact) -> Artifact:
        """Take another artifact in as a part, with its own parts: same manifests, files hard-linked."""
        for file in [*part.manifest["files"], MANIFEST]:
            self.link(f"{name}/{file}", part.path / file)
        for inner in part.manifest["parts"]:
            self.adopt(f"{name}/{inner}", part.part(inner))
        return open_artifact(self.path / name)


def publish(partial: Path, final: Path) -> Artifact:
    """The moment an artifact comes to be. `partial` has its manifest; what is only for resuming goes."""
    for name in SCRATCH_NAMES:
        shutil.rmtree(partial / name, ignore_errors=True)
    (partial / RECIPE).unlink(missing_ok=True)
    _write_protect(partial)
    sync(partial)
    partial.rename(final)
    sync(final.parent)
    return open_artifact(final)


def _write_protect(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o222:
            path.chmod(0o444)


@contextmanager
def writing(final: Path, origin: Origin) -> Iterator[Writer]:
    """Write an artifact at exactly `final` (a part, a snapshot); it is committed if the block ends well.

    What stood there is replaced: for folders that the caller owns alone, never for a series.
    """
    partial = final.with_name(final.name + ".partial")
    for leftover in (partial, final):
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir(parents=True)
    writer, start = Writer(partial, origin), time.monotonic()
    yield writer
    write_manifest(partial, origin, writer.metrics, time.monotonic() - start)
    publish(partial, final)


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


def lineage_of(inputs: Mapping[str, Artifact]) -> dict[str, str]:
    """Ancestors by kind: those of the inputs, then the inputs themselves, which win for their kind."""
    lineage: dict[str, str] = {}
    for artifact in inputs.values():
        lineage.update(artifact.lineage)
    lineage.update({artifact.kind: artifact.content for artifact in inputs.values()})
    return lineage


def require_descent(artifact: Artifact, *ancestors: Artifact) -> None:
    """Raise MismatchError unless `artifact` descends from every one of `ancestors`."""
    for ancestor in ancestors:
        known = artifact.lineage.get(ancestor.kind)
        if known != ancestor.content:
            raise MismatchError(
                f"{artifact} does not belong to {ancestor}: it descends from {ancestor.kind} "
                f"{str(known)[:12]}, and that one is {ancestor.content[:12]}. Name the {ancestor.kind} "
                "it was made from, or make it again from this one."
            )


def require_same_vocabulary(first: Artifact, *others: Artifact) -> None:
    """Raise MismatchError unless all were made with one WordPiece vocabulary."""
    for other in others:
        if _vocabulary(first) != _vocabulary(other):
            raise MismatchError(
                f"{other} and {first} have different WordPiece vocabularies, so their token ids do not mean "
                "the same. Make both with one tokenizer (`realmctl chunk --tokenizer`)."
            )


def require_titles(blocks: Artifact) -> None:
    """Raise MismatchError for blocks imported without titles: a block's embedding is of its title and its text."""
    if blocks.metrics.get("titles") is False:
        raise MismatchError(
            f"{blocks} was imported without titles, and a block is embedded together with its title: vectors made now "
            "would not be those of its index. Import it again with --titles, or use the index it came with."
        )


def _vocabulary(artifact: Artifact) -> str:
    files = artifact.manifest["files"]
    names = [name for name in ("tokenizer/vocab.txt", "vocab.txt") if name in files]
    if not names:
        raise InputError(f"{artifact} holds no vocab.txt, so its token ids mean nothing. Make it again.")
    return str(files[names[0]]["sha256"])
