"""An artifact is a folder that exists only once whole, and says what it was made from.

    w/blocks/          a series: one kind, many versions
      v1/              committed: manifest.json and the files it names
      v2.partial/      being written; nobody reads it

Two hashes: `recipe` = H(stage, version, settings, inputs) answers "need I run?"; `content` = H(files) answers "is it the
same thing?". `seal` covers the whole manifest, so that a changed manifest is noticed too. The order of a commit is: data,
manifest, fsync of files and folders, rename, fsync of the parent (series.py holds the lock and the numbering).
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from realmctl import __version__
from realmctl.errors import InputError, MismatchError
from realmctl.hashing import digest, digest_file

FORMAT = 1
MANIFEST = "manifest.json"
VERSION_NAME = re.compile(r"v([1-9][0-9]{0,8})")
MAX_MANIFEST_BYTES = 64 * 2**20
SCRATCH_NAMES = (".scratch", "live")


@dataclass(frozen=True)
class Origin:
    """What an artifact is made from: all that its recipe hash covers, and the lineage that follows from it."""

    kind: str
    stage: str
    stage_version: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, Any]
    lineage: Mapping[str, str] = field(default_factory=dict)

    @property
    def recipe(self) -> str:
        """H(stage, version, settings, inputs)."""
        return digest([self.stage, self.stage_version, self.settings, self.inputs])


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
        return self.manifest["lineage"]

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The numbers its stage returned."""
        return self.manifest["metrics"]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of its stage."""
        return self.manifest["settings"]

    def file(self, name: str) -> Path:
        """Path of one of its files. Raises InputError when the manifest names no such file."""
        if name not in self.manifest["files"]:
            raise InputError(f"{self} holds no file {name!r}; it has {', '.join(self.manifest['files'])}.")
        return self.path / name

    def has(self, name: str) -> bool:
        """Whether it holds this file or part."""
        return name in self.manifest["files"] or name in self.manifest["parts"]

    def part(self, name: str) -> Artifact:
        """An artifact inside this one, such as a model's `retriever`."""
        if name not in self.manifest["parts"]:
            raise MismatchError(f"{self} has no part {name!r}; it has {', '.join(self.manifest['parts']) or 'none'}.")
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
        """A folder that outlives a kill but is no part of the artifact (checkpoints, finished ranges, `live`)."""
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
        shutil.copytree(source, self.path / name, dirs_exist_ok=True)

    def adopt(self, name: str, part: Artifact) -> Artifact:
        """Take another artifact in as a part: same manifest, files hard-linked."""
        for file in list(part.manifest["files"]) + [MANIFEST]:
            self.link(f"{name}/{file}", part.path / file)
        return open_artifact(self.path / name)


def seal(manifest: Mapping[str, Any]) -> str:
    """Hash of all of a manifest but the seal itself."""
    return digest({key: value for key, value in manifest.items() if key != "seal"})


def content_of(files: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """The identity that these files and parts make up."""
    return digest([{name: entry["sha256"] for name, entry in files.items()}, dict(parts)])


def write_manifest(folder: Path, origin: Origin, metrics: Mapping[str, Any], seconds: float) -> None:
    """Describe everything below `folder` in its manifest, written last and made durable. Parts keep their own manifest."""
    parts = {child.name: open_artifact(child).content for child in sorted(folder.iterdir()) if (child / MANIFEST).is_file()}
    files = {name: _entry(folder / name) for name in _names_below(folder, set(parts))}
    manifest = {
        "format": FORMAT,
        **asdict(origin),
        "recipe": origin.recipe,
        "content": content_of(files, parts),
        "files": files,
        "parts": parts,
        "metrics": dict(metrics),
        "realmctl": __version__,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "host": platform.node(),
    }
    manifest["seal"] = seal(manifest)
    path = folder / (MANIFEST + ".writing")
    path.write_text(json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False))
    sync(path)
    path.rename(folder / MANIFEST)
    for below, _, names in os.walk(folder):
        for name in names:
            sync(Path(below) / name)
            (Path(below) / name).chmod(0o444)
        sync(Path(below))


def _entry(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": digest_file(path)}


def _names_below(folder: Path, parts: set[str]) -> list[str]:
    """Relative names of an artifact's own files: no manifest, no scratch, nothing of its parts."""
    names = []
    for below, folders, files in os.walk(folder):
        here = Path(below).relative_to(folder)
        if here == Path("."):
            folders[:] = [name for name in folders if name not in parts and name not in SCRATCH_NAMES]
        names += [str(here / name) for name in files if not (here == Path(".") and name in (MANIFEST, "recipe.json"))]
    return sorted(names)


def sync(path: Path) -> None:
    """fsync a file or folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(partial: Path, final: Path) -> Artifact:
    """The moment an artifact comes to be: drop scratch, rename, fsync the parent. `partial` has its manifest already."""
    for name in SCRATCH_NAMES:
        shutil.rmtree(partial / name, ignore_errors=True)
    (partial / "recipe.json").unlink(missing_ok=True)
    sync(partial)
    partial.rename(final)
    sync(final.parent)
    return open_artifact(final)


@contextmanager
def writing(final: Path, origin: Origin) -> Iterator[Writer]:
    """Write an artifact at exactly `final` (a part, a snapshot): in `final.partial`, committed when the block ends well.

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
    """Open a version, or the newest version of a series; check manifest, file set and sizes (not yet the bytes: `verify`).

    Raises InputError when there is none, or when it is not whole.
    """
    path = Path(path)
    if not (path / MANIFEST).is_file():
        path = newest_version(path)
    manifest = read_manifest(path)
    artifact = Artifact(path, manifest)
    found = _names_below(path, set(manifest["parts"]))
    if found != sorted(manifest["files"]):
        odd = sorted(set(found) ^ set(manifest["files"]))
        raise InputError(f"{artifact} is not whole: {', '.join(odd[:5])} missing from it or foreign to it. Make it again.")
    for name, entry in manifest["files"].items():
        size = (path / name).stat().st_size
        if size != entry["bytes"]:
            raise InputError(f"{path / name} has {size} bytes, its manifest says {entry['bytes']}. Restore it or make {artifact} again.")
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
    matches = (VERSION_NAME.fullmatch(child.name) for child in series.iterdir() if (child / MANIFEST).is_file())
    return sorted(int(match[1]) for match in matches if match)


def read_manifest(folder: Path) -> dict[str, Any]:
    """A manifest whose seal holds. Raises InputError for a damaged one, MismatchError for one of a newer format."""
    path = folder / MANIFEST
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise ValueError("larger than 64 MiB")
        manifest = json.loads(path.read_text())
        sealed = manifest["seal"] == seal(manifest) and manifest["content"] == content_of(manifest["files"], manifest["parts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a readable manifest ({error}). Restore it or make the artifact again.") from None
    if not sealed:
        raise InputError(f"{path} was changed after it was written: its seal does not hold. Restore it or make the artifact again.")
    if manifest["format"] > FORMAT:
        raise MismatchError(f"{folder} has artifact format {manifest['format']}, this realmctl reads up to {FORMAT}. Upgrade realmctl.")
    return manifest


def verify(artifact: Artifact) -> int:
    """Recompute every hash, parts included. Returns the bytes read; raises InputError naming the first damaged file."""
    total = 0
    for name, entry in artifact.manifest["files"].items():
        path = artifact.path / name
        if digest_file(path) != entry["sha256"]:
            raise InputError(f"{path} is damaged: its SHA-256 is not the one in {artifact.path / MANIFEST}. Restore it or make {artifact} again.")
        total += entry["bytes"]
    return total + sum(verify(artifact.part(name)) for name in artifact.manifest["parts"])


def lineage_of(inputs: Mapping[str, Artifact]) -> dict[str, str]:
    """Ancestors by kind: those of the inputs, then the inputs themselves, who win where a kind comes twice."""
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
                f"{artifact} does not belong to {ancestor}: it descends from {ancestor.kind} {str(known)[:12]}, "
                f"and that one is {ancestor.content[:12]}. Name the {ancestor.kind} it was made from, or make it again from this one."
            )


def require_same_vocabulary(first: Artifact, *others: Artifact) -> None:
    """Raise MismatchError unless all were made with one WordPiece vocabulary."""
    for other in others:
        if _vocabulary(other) != _vocabulary(first):
            raise MismatchError(
                f"{other} and {first} have different WordPiece vocabularies, so their token ids do not mean the same. "
                "Make both with one tokenizer (`realmctl chunk --tokenizer`)."
            )


def _vocabulary(artifact: Artifact) -> str | None:
    files = artifact.manifest["files"]
    names = [name for name in ("tokenizer/vocab.txt", "vocab.txt") if name in files]
    return files[names[0]]["sha256"] if names else None
