"""Writing an artifact: files in a partial folder, then one commit.

The order of a commit is: data, fsync, manifest, fsync, rename, fsync of the parent folder.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from realmctl.artifacts.artifact import Artifact, leased, open_artifact
from realmctl.artifacts.disk import copy_file, rename_to_fresh, sync
from realmctl.artifacts.folder import (
    MANIFEST,
    RECIPE,
    RESERVED_NAMES,
    SCRATCH_NAMES,
    require_component,
    require_relative,
    write_protect,
)
from realmctl.artifacts.hashing import digest_file, files_below
from realmctl.artifacts.manifest import Origin, write_manifest
from realmctl.errors import InputError

CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP)
"""Errors that mean that two names cannot share one file here, so that it has to be copied."""
REMOVAL_ATTEMPTS = 20


@dataclass
class Writer:
    """An artifact that is being written: put files below `path`, and numbers into `metrics`.

    Every method that takes a name raises InputError for a name that leads out of the folder.
    """

    path: Path
    origin: Origin
    metrics: dict[str, object] = field(default_factory=dict)
    check_sources: Callable[[], None] | None = field(default=None, compare=False)
    """Raises InputError for a file from outside that is not as it was when it was hashed."""

    def sources_read(self) -> None:
        """Say that nothing is read from outside any more. What changed since it was hashed is refused; a later change is of no matter.

        A stage that goes on for long calls it before its first step. The others need not: it is called before the commit.
        """
        if self.check_sources is not None:
            self.check_sources()
            self.check_sources = None

    def file(self, name: str) -> Path:
        """Path of a new file of the artifact. Its parent folders are made."""
        require_relative(name)
        if name.partition("/")[0] in RESERVED_NAMES:
            raise InputError(f"{name!r} is a name that realmctl uses itself. Give the file another name.")
        return self._target(name)

    def scratch(self, name: str) -> Path:
        """Return a folder that survives a killed run but is not part of the artifact, for checkpoints for example."""
        require_component(name)
        path = self.path / name if name in SCRATCH_NAMES else self.path / ".scratch" / name
        self._require_no_link(path)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def link(self, name: str, source: Path) -> Path:
        """Hard-link a file of another artifact into this one. Copy it where the file system cannot link."""
        target = self.file(name)
        _link(target, source)
        return target

    def link_equal(self, other: Artifact) -> None:
        """Hard-link each file that another artifact has of the same name and bytes, so that the disk holds it once."""
        for name, entry in other.manifest.files.items():
            path = self.path / name
            if path.is_file() and path.stat().st_size == entry.bytes and digest_file(path) == entry.sha256:
                _link(path, other.path / name)

    def copy_folder(self, name: str, source: Path) -> None:
        """Copy a small folder, such as a tokenizer, into the artifact. `.` stands for the artifact's own folder."""
        for path in files_below(source):
            relative = path.relative_to(source).as_posix()
            copy_file(path, self.file(relative if name == "." else f"{name}/{relative}"))

    def adopt(self, name: str, part: Artifact) -> Artifact:
        """Add another artifact, with its own parts, as a part: the same manifests, and hard-linked files."""
        require_component(name)
        if name in RESERVED_NAMES:
            raise InputError(f"{name!r} is a name that realmctl uses itself. Give the part another name.")
        target = self.path / name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        self._link_files(name, part)
        return open_artifact(target)

    def _link_files(self, folder: str, part: Artifact) -> None:
        for file in [*part.manifest.files, MANIFEST]:
            require_relative(file)
            _link(self._target(f"{folder}/{file}"), part.path / file)
        for inner in part.manifest.parts:
            require_component(inner)
            self._link_files(f"{folder}/{inner}", part.part(inner))

    def _target(self, name: str) -> Path:
        """Return the path of `name`. Make its parent folders, none of which may be a symbolic link."""
        path = self.path / name
        self._require_no_link(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _require_no_link(self, folder: Path) -> None:
        """Raise InputError when a folder between the artifact's folder and `folder` is a symbolic link."""
        while folder != self.path:
            if folder.is_symlink():
                raise InputError(f"{folder} is a symbolic link, which leads out of {self.path}. Remove it.")
            folder = folder.parent


def _link(target: Path, source: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in CANNOT_LINK:
            raise
        copy_file(source, target)


def publish(partial: Path, final: Path) -> Artifact:
    """Commit: rename a folder that has its manifest to its final name, which must be free.

    Before that, scratch folders are removed, files are write-protected, and the checks of `open_artifact` are made.

    Raises:
        InputError: The folder does not pass the checks.
        OSError: A flush or the rename failed.

    After an error nothing is visible under the final name.
    """
    for name in SCRATCH_NAMES:
        remove_folder(partial / name)
    (partial / RECIPE).unlink(missing_ok=True)
    write_protect(partial)
    manifest = open_artifact(partial).manifest
    sync(partial)
    rename_to_fresh(partial, final)
    return leased(Artifact(final, manifest))


def remove_folder(folder: Path) -> None:
    """Remove a folder, also while another process still writes files into it (a refresher), or removes it too (a second gc)."""
    for attempt in range(REMOVAL_ATTEMPTS):
        try:
            shutil.rmtree(folder)
            return
        except FileNotFoundError:
            if not folder.exists():
                return
        except OSError:
            if attempt == REMOVAL_ATTEMPTS - 1:
                raise
        time.sleep(0.01)


@contextmanager
def writing(final: Path, origin: Origin) -> Iterator[Writer]:
    """Write an artifact at exactly `final`, such as a part or a snapshot.

    It is committed if the block ends without an error.

    An artifact of that name is replaced. Use it only in a folder that no other run writes to, never in a series.
    """
    partial = final.with_name(final.name + ".partial")
    for leftover in (partial, final):
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir(parents=True)
    writer, start = Writer(partial, origin), time.monotonic()
    yield writer
    write_manifest(partial, origin, writer.metrics, time.monotonic() - start)
    publish(partial, final)
