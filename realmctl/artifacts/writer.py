"""Writing an artifact: files below a partial folder, then one commit.

The order of a commit is: data, fsync, manifest, fsync, rename, fsync of the parent folder.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realmctl.artifacts.artifact import Artifact, open_artifact
from realmctl.artifacts.manifest import MANIFEST, RECIPE, SCRATCH_NAMES, Origin, write_manifest
from realmctl.storage.durable import sync
from realmctl.storage.hashing import files_below


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
