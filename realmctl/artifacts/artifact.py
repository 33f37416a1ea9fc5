"""Opening and verifying artifacts. An artifact is a folder that records what it was made from.

    w/blocks/          a series: one kind, many versions
      v1/              a committed version: manifest.json and the files that it names
      v2.partial/      an unfinished run

manifest.py writes and reads the manifest, writer.py writes and commits artifacts, series.py numbers the versions.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from realmctl.artifacts.disk import read_small
from realmctl.artifacts.folder import LAST, LOCK, MANIFEST, NEWEST, PINNED, shown, sizes_below
from realmctl.artifacts.hashing import digest_regular, read_sealed
from realmctl.artifacts.lease import lease
from realmctl.artifacts.manifest import Manifest, read_manifest
from realmctl.errors import ConfigError, InputError, MismatchError, as_realmctl_error

_hashed: set[tuple[Path, str]] = set()
"""Artifacts that this process hashed when it opened them: path and content."""
MAX_PART_DEPTH = 8
"""Limit on parts of parts."""
VERSION_NAME = re.compile(r"v([1-9][0-9]{0,8})")


VARIABLE = "REALMCTL_VERIFY"
FOUND_BYTES = 2**30
"""With `standard`, a reused output is hashed if it is not larger than this (1 GiB, about a second)."""


class Verification(StrEnum):
    """What is hashed again before it is used, set by the environment variable REALMCTL_VERIFY.

    Manifests, names, types and sizes of files are checked at every open, whatever the policy, and so are the hashes of
    checkpoints, snapshots and refreshed indexes that training continues from.

    quick: nothing. standard: the inputs of a stage, and reused outputs up to 1 GiB. full: every
    artifact that is opened, at its first opening in a process, and versions of any size.
    """

    QUICK = "quick"
    STANDARD = "standard"
    FULL = "full"


def verification() -> Verification:
    """Return the policy of this process. Raises ConfigError when REALMCTL_VERIFY has another value."""
    value = os.environ.get(VARIABLE) or Verification.STANDARD
    try:
        return Verification(value)
    except ValueError:
        raise ConfigError(f"{VARIABLE}={value}: use {', '.join(Verification)}.") from None


@dataclass(frozen=True)
class Artifact:
    """A committed artifact: its folder and its checked manifest. `open_artifact` makes one."""

    path: Path
    manifest: Manifest
    named_as_newest: bool = field(default=False, compare=False)
    """Whether it was opened by the name of its series, and is the newest version of it."""

    @property
    def kind(self) -> str:
        """Kind of the artifact: blocks, spans, encoder, retriever, embeddings, index, model, qa-model or scores."""
        return self.manifest.kind

    @property
    def content(self) -> str:
        """Hash of the files and parts: the artifact's identity."""
        return self.manifest.content

    @property
    def recipe(self) -> str:
        """Hash of what it was made from."""
        return self.manifest.recipe

    @property
    def lineage(self) -> Mapping[str, str]:
        """{kind: content} of the artifacts that it descends from."""
        return self.manifest.lineage

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The numbers that its stage returned."""
        return self.manifest.metrics

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of its stage."""
        return self.manifest.settings

    def file(self, name: str) -> Path:
        """Path of one of its files. Raises InputError when the manifest names no such file."""
        if name not in self.manifest.files:
            known = ", ".join(self.manifest.files)
            raise InputError(f"{self} holds no file {name!r}; it has {known}.")
        return self.path / name

    def has(self, name: str) -> bool:
        """Whether it has a file or part of this name."""
        return name in self.manifest.files or name in self.manifest.parts

    def part(self, name: str) -> Artifact:
        """An artifact inside this one, such as a model's `retriever`. Raises MismatchError if there is none."""
        if name not in self.manifest.parts:
            known = ", ".join(self.manifest.parts) or "none"
            raise MismatchError(f"{self} has no part {name!r}; it has {known}.")
        return leased(_open_part(self, name, 1))

    def parts(self) -> list[Artifact]:
        """All its parts."""
        return [self.part(name) for name in self.manifest.parts]

    def total_bytes(self) -> int:
        """Size of all files, including the files of parts."""
        own = sum(entry.bytes for entry in self.manifest.files.values())
        return own + sum(part.total_bytes() for part in self.parts())

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


def open_artifact(path: Path | str) -> Artifact:
    """Open a version, or the pinned or else the newest version of a series.

    The manifest, the set of files, their types and their sizes are checked, in parts too. `verify` checks the bytes, and so does
    this function with REALMCTL_VERIFY=full. As long as the returned object lives, `realmctl gc` does not delete the version.

    Raises:
        InputError: There is no artifact, or it is damaged.
        MismatchError: Its format is not one that this realmctl reads.
        ConfigError, AccessError, ResourceError: It may be whole: REALMCTL_VERIFY has a wrong value, this user may not read it, or
            memory, handles or a device failed.
    """
    path, policy = Path(path), verification()
    try:
        meant = path if _is_version(path) else pinned_version(path)
        artifact = leased(dataclasses.replace(_open(meant or newest_version(path), 0), named_as_newest=meant is None))
    except OSError as error:
        raise as_realmctl_error(error, path) or error from None
    if policy is Verification.FULL and (seen := (artifact.path.absolute(), artifact.content)) not in _hashed:
        _verify_files(artifact)
        _hashed.add(seen)
    return artifact


def _is_version(path: Path) -> bool:
    """Whether a path is a version and not a series. A version of a series is one though its manifest is gone."""
    if os.path.lexists(path / MANIFEST):
        return True
    match = VERSION_NAME.fullmatch(path.name)
    return match is not None and int(match[1]) in version_numbers(path.parent)


def leased(artifact: Artifact) -> Artifact:
    """Give an artifact a lease on the version that it is, or that it is a part of. Only versions of a series have one."""
    version = artifact.path.absolute()
    while os.path.lexists(version.parent / MANIFEST):
        version = version.parent
    if VERSION_NAME.fullmatch(version.name):
        object.__setattr__(artifact, "lease", lease(version / MANIFEST))
    return artifact


def open_unfinished(partial: Path) -> Artifact:
    """Open a run that has its manifest but was not committed.

    The checks and errors are the same as in `open_artifact`.
    """
    return _open(partial, 0, unfinished=True)


def _open(path: Path, depth: int, unfinished: bool = False) -> Artifact:
    if depth > MAX_PART_DEPTH:
        raise InputError(f"{path} lies in more than {MAX_PART_DEPTH} parts of parts. It is not an artifact.")
    artifact = Artifact(path, read_manifest(path))
    require_files(artifact, unfinished)
    for name in artifact.manifest.parts:
        _open_part(artifact, name, depth + 1)
    return artifact


def require_files(artifact: Artifact, unfinished: bool = False) -> None:
    """Raise InputError unless the folder has exactly the files of its manifest, with the sizes in the manifest."""
    files = artifact.manifest.files
    sizes = sizes_below(artifact.path, artifact.manifest.parts, unfinished)
    if odd := sorted(sizes.keys() ^ files.keys()):
        names = ", ".join(name if name.isprintable() else shown(name) for name in odd[:5])
        raise InputError(f"{artifact} is damaged: {names} is missing or not in its manifest. Make it again.")
    for name, size in sizes.items():
        if size != files[name].bytes:
            raise InputError(
                f"{artifact.path / name} has {size} bytes, and its manifest records {files[name].bytes}. "
                f"Restore it or make {artifact} again."
            )


def _open_part(artifact: Artifact, name: str, depth: int) -> Artifact:
    part = _open(artifact.path / name, depth)
    if part.content != artifact.manifest.parts[name]:
        raise InputError(
            f"{part} is not the part that {artifact} was committed with. Restore it or make {artifact} again."
        )
    return part


def newest_version(series: Path) -> Path:
    """Path of the newest committed version in `series`. Raises InputError when there is none."""
    versions = versions_in(series)
    if not versions:
        if series.is_file():
            raise InputError(
                f"{series} is a file, and an artifact is a folder. Name the folder of a version or of a series."
            )
        what = "has no finished version" if series.is_dir() else "does not exist"
        raise InputError(f"{series} {what}. Run the stage that makes it first, or name a version or a series.")
    return versions[-1]


def versions_in(series: Path) -> list[Path]:
    """Paths of the committed versions, the oldest first and the newest last: the one order that all who read a series follow.

    It is that of the numbers, but for a version that a later run found and made the newest again (`series.make_newest`).

    Raises InputError when the file that says so is damaged.
    """
    numbers = version_numbers(series)
    if numbers and (again := newest_again(series)):
        newest, among = again
        if newest in numbers and numbers[-1] <= among:
            numbers.remove(newest)
            numbers.append(newest)
    return [series / f"v{number}" for number in numbers]


def newest_again(series: Path) -> tuple[int, int] | None:
    """The number of the version that was made the newest again, and the highest number at that time; None if there is none.

    A version with a higher number is newer than both. Raises InputError when the file is damaged.
    """
    path = series / NEWEST
    try:
        table = read_sealed(path)
        return int(table["newest"]), int(table["among"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{path} is damaged, so it is not known which version of {series} is the newest. Delete it (rm {path}), and run the command "
            "again whose version you want: without the file the highest number is the newest."
        ) from None


def pinned_version(series: Path) -> Path | None:
    """Path of the version that a series was told to stand for (`realmctl pin`); None if there is none.

    Raises InputError when it is not there any more.
    """
    try:
        name = read_small(series / PINNED, limit=20).decode().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        name = "what is not a version"
    if not VERSION_NAME.fullmatch(name) or not (series / name / MANIFEST).is_file():
        raise InputError(
            f"{series / PINNED} names {shown(name)}, which is not there. Run `realmctl pin {series} --remove`, or pin another version."
        )
    return series / name


def version_numbers(series: Path) -> list[int]:
    """Numbers of the committed versions, ascending. A damaged version counts, and so does one whose manifest is gone.

    A folder is a series if it has the lock of one, or a version with a manifest. In other folders `v1` is a name like any other.
    """
    if not series.is_dir():
        return []
    matches = (VERSION_NAME.fullmatch(child.name) for child in series.iterdir())
    numbers = sorted(int(match[1]) for match in matches if match)
    marks = (LOCK, LAST, *(f"v{number}/{MANIFEST}" for number in numbers))
    return numbers if any(os.path.lexists(series / mark) for mark in marks) else []


def verify(artifact: Artifact, unfinished: bool = False) -> int:
    """Repeat every check of `open_artifact`, and hash every file again, including the files of parts.

    Args:
        artifact: What to check.
        unfinished: Whether the artifact is not committed yet and may contain scratch folders.

    Returns:
        The number of bytes that were hashed.

    Raises:
        InputError: Something is damaged. The message names the first damaged file.
    """
    again = _open(artifact.path, 0, unfinished)
    if again.manifest != artifact.manifest:
        raise InputError(f"{artifact} was replaced while it was in use. Run the same command again.")
    return _verify_files(again)


def _verify_files(artifact: Artifact) -> int:
    total = 0
    for name, entry in artifact.manifest.files.items():
        path = artifact.path / name
        if digest_regular(path) != entry.sha256:
            raise InputError(
                f"{path} is damaged: its SHA-256 is not the one in {artifact.path / MANIFEST}. "
                f"Restore it or make {artifact} again."
            )
        total += entry.bytes
    return total + sum(map(_verify_files, artifact.parts()))
