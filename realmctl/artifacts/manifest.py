"""The manifest: what an artifact is, what it was made from, and its files with their hashes.

`recipe` is the hash of stage, version, settings, inputs and lineage: it answers "must this run?".
`content` is the hash of the files and parts: it answers "is it the same thing?".
`seal` is the hash of the manifest: it shows a change that was made by accident. An attacker can compute it too. So every value
of a manifest is checked before it is used, and `recipe` and `content` are computed again.
"""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from realmctl.artifacts.disk import read_small, write_file
from realmctl.artifacts.folder import (
    MANIFEST,
    MAX_FILES,
    RESERVED_NAMES,
    component_problem,
    part_folders,
    relative_problem,
    remove_empty_folders,
    shown,
    sizes_below,
    sync_below,
)
from realmctl.artifacts.hashing import digest, digest_regular, is_sealed, sealed
from realmctl.errors import InputError, MismatchError, as_realmctl_error, one_line
from realmctl.version import __version__

FORMAT = 1
MAX_MANIFEST_BYTES = 16 * 2**20
MAX_PARTS = 64
MAX_JSON_DEPTH = 32
"""Limit on the nesting of settings, inputs and metrics."""
MAX_TEXT_CHARACTERS = 255
"""Limit on short texts, such as the name of a stage."""
MAX_STAGE_VERSION = 10**6
MAX_FILE_BYTES = 2**60
MAX_SECONDS = 10**12
FORMER = "former"
"""Beginning of the names of inputs that an artifact replaces. It was made with them, and does not need them."""
SHA256 = re.compile(r"[0-9a-f]{64}")

InputDigest: TypeAlias = "str | Sequence[InputDigest]"
"""What a recipe has of an input: a content hash, a literal such as `train:8000`, or several of these."""


@dataclass(frozen=True)
class SourceFile:
    """A file from outside that was read. The name of a folder ends in `/`, and its size is that of all its files."""

    name: str
    bytes: int


@dataclass(frozen=True)
class FileEntry:
    """A file of an artifact: its size and its SHA-256."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Origin:
    """What an artifact is made from.

    Attributes:
        kind: blocks, spans, encoder, retriever, embeddings, index, model, qa-model, scores or the kind of a plug-in.
        stage, stage_version: What makes it.
        settings: The settings of the stage.
        inputs: {field: content hash of an artifact, or hash of what a source holds}.
        lineage: {kind: content hash} of the artifacts that it descends from.
        sources: {field: files from outside that were read}. For people only: no recipe or content hash covers it.
    """

    kind: str
    stage: str
    stage_version: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, InputDigest]
    lineage: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Sequence[SourceFile]] = field(default_factory=dict, compare=False)

    @property
    def recipe(self) -> str:
        """Hash of stage, version, settings, inputs and lineage.

        Equal vectors may be those of different blocks. The lineage keeps their indexes apart.
        """
        return digest([self.stage, self.stage_version, self.settings, self.inputs, self.lineage])


@dataclass(frozen=True, kw_only=True)
class Manifest(Origin):
    """What an artifact is, and what it was made from. `write_manifest` makes one, and `read_manifest` gives it back.

    Attributes:
        files: {name: entry} of its own files, without those of its parts.
        parts: {name: content hash} of the artifacts inside it.
        metrics: The numbers that its stage returned.
        realmctl: Version of the realmctl that made it.
        time: When it was finished, as ISO 8601 in UTC.
        seconds: How long the stage ran.
        host: Name of the machine.
    """

    files: Mapping[str, FileEntry]
    parts: Mapping[str, str]
    metrics: Mapping[str, Any]
    realmctl: str
    time: str
    seconds: float
    host: str

    @cached_property
    def content(self) -> str:
        """Hash of the files and parts: the artifact's identity."""
        return digest([{name: entry.sha256 for name, entry in self.files.items()}, dict(self.parts)])

    def table(self) -> dict[str, Any]:
        """The content of manifest.json."""
        fields = asdict(self)
        origin = {each.name: fields.pop(each.name) for each in dataclasses.fields(Origin)}
        return sealed({"format": FORMAT, **origin, "recipe": self.recipe, "content": self.content, **fields})


FIELDS = {"format", "recipe", "content", "seal", *(each.name for each in dataclasses.fields(Manifest))}


def write_manifest(folder: Path, origin: Origin, metrics: Mapping[str, object], seconds: float) -> None:
    """Hash every file below `folder`, flush all of them to the disk, then write the manifest and flush it.

    The hashes are computed from the bytes that are read back from the files. Parts keep their own manifest. Empty
    folders are removed.

    Raises:
        InputError: `folder` holds something that an artifact may not hold, such as a symbolic link.
        OSError: A write or flush failed. Then there is no manifest.
    """
    remove_empty_folders(folder)
    parts = {child.name: read_manifest(child).content for child in part_folders(folder)}
    sizes = sizes_below(folder, parts, unfinished=True)
    manifest = Manifest(
        **{each.name: getattr(origin, each.name) for each in dataclasses.fields(Origin)},
        files={name: FileEntry(sizes[name], digest_regular(folder / name)) for name in sorted(sizes)},
        parts=parts,
        metrics=_plain(metrics),
        realmctl=__version__,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        host=platform.node(),
    )
    text = _rendered(manifest.table())
    try:
        _parsed(json.loads(text))
    except ValueError as error:
        raise InputError(f"{folder} cannot be committed: {error}. Nothing was published.") from None
    sync_below(folder)
    write_file(folder / MANIFEST, text.encode())


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an artifact, after every check that needs no other file.

    The checks are: it is a regular file of the known format, its seal is correct, its text has the form that realmctl
    writes, its fields are valid, and `recipe` and `content` are the hashes that follow from the other fields.

    Raises:
        InputError: The manifest is missing, damaged or not valid.
        MismatchError: It has another format than the one that is read.
        ResourceError: The device could not read it.
    """
    path = folder / MANIFEST
    try:
        text = read_small(path, MAX_MANIFEST_BYTES).decode()
        table = json.loads(text)
        if not isinstance(table, dict):
            raise ValueError("it is not a table")
        _require_known_format(table.get("format"), folder)
        whole = table == sealed(table) and text == _rendered(table)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{folder} is damaged: it has no {MANIFEST}, so what it holds is unknown. Restore the file, make the artifact "
            f"again, or move the folder out of its series."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} is not a readable manifest ({one_line(error)}). Restore it or make the artifact again."
        ) from None
    if not whole:
        raise InputError(
            f"{path} was changed after it was written: its seal does not hold. Restore it or make the artifact again."
        )
    try:
        return _parsed(table)
    except ValueError as error:
        raise InputError(
            f"{path} is not a valid manifest: {one_line(error)}. realmctl never writes such a manifest, so do not "
            "trust this artifact. Restore it or make it again."
        ) from None


def is_artifact(folder: Path) -> bool:
    """Whether `folder` holds a manifest of realmctl, valid or not."""
    return is_sealed(folder / MANIFEST)


def _rendered(table: Mapping[str, object]) -> str:
    return json.dumps(table, indent=1, allow_nan=False) + "\n"


def _plain(value: object) -> Any:
    """Convert a metric to JSON: numpy's numbers to Python's, and a number that is not finite to null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _require_known_format(number: object, folder: Path) -> None:
    if type(number) is not int:
        raise ValueError("its format is not a number")
    if number != FORMAT:
        raise MismatchError(
            f"{folder} has artifact format {number}, and this realmctl reads format {FORMAT}. Open it with the realmctl that "
            "made it, or make the artifact again."
        )


def _parsed(table: Mapping[str, Any]) -> Manifest:
    """The manifest in a table. Raises ValueError, which says what is wrong, unless it is valid and has the right hashes."""
    if table.keys() != FIELDS:
        odd = ", ".join(shown(name) for name in sorted(table.keys() ^ FIELDS)[:5])
        raise ValueError(f"fields are missing or unknown: {odd}")
    for name in ("realmctl", "time"):
        _require(_is_short_text(table[name]) and bool(table[name]), f"{name} is not a short text")
    _require(_is_short_text(table["host"]), "host is not a short text")
    datetime.fromisoformat(table["time"])
    _require(type(table["seconds"]) in (int, float), "seconds is not a number")
    _require(0 <= table["seconds"] <= MAX_SECONDS, "seconds is out of range")
    _check_json("metrics", table["metrics"])
    _check_files(table["files"], table["parts"])
    origin = parse_origin(table)
    manifest = Manifest(
        **{each.name: getattr(origin, each.name) for each in dataclasses.fields(Origin)},
        files={name: FileEntry(**entry) for name, entry in table["files"].items()},
        **{name: table[name] for name in ("parts", "metrics", "realmctl", "time", "seconds", "host")},
    )
    _check_hashes(table, manifest)
    return manifest


def parse_origin(table: Mapping[str, Any]) -> Origin:
    """The origin in a table, which may have more fields. Raises KeyError or ValueError unless it is valid."""
    for name in ("kind", "stage"):
        _require(_is_short_text(table[name]) and bool(table[name]), f"{name} is not a short text")
    _require(component_problem(table["kind"]) is None, "kind is not a name")
    _require(_is_integer(table["stage_version"], MAX_STAGE_VERSION), "stage_version is not a valid number")
    for name in ("settings", "inputs", "sources"):
        _check_json(name, table[name])
    for name, value in table["inputs"].items():
        _require(_is_text_or_list(value), f"input {shown(name)} is not a hash")
    _check_names_of_hashes("lineage", table["lineage"])
    for name, files in table["sources"].items():
        _require(isinstance(files, list), f"the sources of {shown(name)} are not a list")
        for file in files:
            entry = isinstance(file, dict) and file.keys() == {"name", "bytes"}
            valid = entry and isinstance(file["name"], str) and _is_integer(file["bytes"], MAX_FILE_BYTES)
            _require(valid, f"a source of {shown(name)} is not valid")
    sources = {name: [SourceFile(**file) for file in files] for name, files in table["sources"].items()}
    fields = ("kind", "stage", "stage_version", "settings", "inputs", "lineage")
    return Origin(**{name: table[name] for name in fields}, sources=sources)


def _check_files(files: Any, parts: Any) -> None:
    _check_names_of_hashes("parts", parts)
    _require(len(parts) <= MAX_PARTS, f"it has more than {MAX_PARTS} parts")
    _require(isinstance(files, dict), "files is not a table")
    _require(len(files) <= MAX_FILES, f"it has more than {MAX_FILES} files")
    for name, entry in files.items():
        problem = relative_problem(name)
        _require(problem is None, f"the file name {shown(name)} is not safe: {problem}")
        _require(isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}, f"the entry of {name} is not valid")
        _require(_is_integer(entry["bytes"], MAX_FILE_BYTES), f"the size of {name} is not valid")
        _require(_is_hash(entry["sha256"]), f"the hash of {name} is not a SHA-256")
    for name in [*parts, *files]:
        top = name.partition("/")[0]
        _require(top not in RESERVED_NAMES, f"the name {shown(name)} is reserved")
        _require(name in parts or top not in parts, f"the file {shown(name)} lies in a part")


def _check_hashes(table: Mapping[str, object], manifest: Manifest) -> None:
    _require(
        table["recipe"] == manifest.recipe, "recipe is not the hash of stage, version, settings, inputs and lineage"
    )
    _require(table["content"] == manifest.content, "content is not the hash of files and parts")


def _check_names_of_hashes(field: str, value: Any) -> None:
    """Check a table of names and SHA-256 hashes."""
    _require(isinstance(value, dict), f"{field} is not a table")
    for name, sha256 in value.items():
        problem = component_problem(name)
        _require(problem is None, f"the name {shown(name)} in {field} is not safe: {problem}")
        _require(_is_hash(sha256), f"the hash of {shown(name)} in {field} is not a SHA-256")


def _check_json(field: str, value: object) -> None:
    """Check a table: texts must have a UTF-8 form, and tables and lists must not be nested deeper than MAX_JSON_DEPTH."""

    def check(value: object, depth: int) -> None:
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, dict | list):
            _require(depth > 0, f"its values are nested more than {MAX_JSON_DEPTH} deep")
            for item in [*value, *value.values()] if isinstance(value, dict) else value:
                check(item, depth - 1)

    _require(isinstance(value, dict), f"{field} is not a table")
    check(value, MAX_JSON_DEPTH)


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def _is_integer(value: object, most: int) -> bool:
    """Whether `value` is an integer from 0 to `most`. A bool, which Python counts as an integer, is refused."""
    return type(value) is int and 0 <= value <= most


def _is_short_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_CHARACTERS and value.isprintable()


def _is_text_or_list(value: object) -> bool:
    """A hash or literal, or a list of such."""
    return isinstance(value, str) or (isinstance(value, list) and all(map(_is_text_or_list, value)))


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)
