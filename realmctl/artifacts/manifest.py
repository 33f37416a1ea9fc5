"""Writing and reading the manifest: what an artifact was made from, and its files with their hashes.

`recipe` is the hash of stage, version, settings and inputs: it answers "must this run?".
`content` is the hash of the files: it answers "is it the same thing?".
`seal` is the hash of the manifest: it shows a change that was made by accident.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from realmctl.artifacts.durable import write_file
from realmctl.artifacts.file_tree import part_folders, remove_empty_folders, sizes_below, sync_below
from realmctl.artifacts.hashing import digest, digest_regular
from realmctl.artifacts.manifest_schema import (
    FORMAT,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    check_manifest,
    content_of,
    recipe_of,
    require_known_format,
)
from realmctl.artifacts.regular_file import read_small
from realmctl.errors import InputError, as_realmctl_error, one_line
from realmctl.version import __version__


@dataclass(frozen=True)
class Origin:
    """What an artifact is made from: everything that its recipe hash covers, and its lineage."""

    kind: str
    stage: str
    stage_version: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, Any]
    lineage: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """{field: [{name, bytes}]} of the files outside that were read. For people only: no recipe or content hash covers it."""

    @property
    def recipe(self) -> str:
        """Hash of stage, version, settings and inputs."""
        return recipe_of(self.stage, self.stage_version, self.settings, self.inputs)


def seal(manifest: Mapping[str, Any]) -> str:
    """Hash of everything in a manifest except the seal itself."""
    return digest({key: value for key, value in manifest.items() if key != "seal"})


def write_manifest(folder: Path, origin: Origin, metrics: Mapping[str, Any], seconds: float) -> None:
    """Hash every file below `folder`, flush all of them to the disk, then write the manifest and flush it.

    The hashes are computed from the bytes that are read back from the files. Parts keep their own manifest. Empty
    folders are removed.

    Raises:
        InputError: `folder` holds something that an artifact may not hold, such as a symbolic link.
        OSError: A write or flush failed. Then there is no manifest.
    """
    remove_empty_folders(folder)
    parts = {child.name: read_manifest(child)["content"] for child in part_folders(folder)}
    sizes = sizes_below(folder, parts, unfinished=True)
    files = {name: {"bytes": sizes[name], "sha256": digest_regular(folder / name)} for name in sorted(sizes)}
    manifest = {
        "format": FORMAT,
        **asdict(origin),
        "recipe": origin.recipe,
        "content": content_of(files, parts),
        "files": files,
        "parts": parts,
        "metrics": _plain(metrics),
        "realmctl": __version__,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "host": platform.node(),
    }
    manifest["seal"] = seal(manifest)
    text = _rendered(manifest)
    try:
        check_manifest(json.loads(text))
    except ValueError as error:
        raise InputError(f"{folder} cannot be committed: {error}. Nothing was published.") from None
    sync_below(folder)
    write_file(folder / MANIFEST, text.encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an artifact, after every check that needs no other file.

    The checks are: it is a regular file of a known format, its seal is correct, its text has the form that realmctl
    writes, its fields are valid, and `recipe` and `content` are the hashes that follow from the other fields.

    Raises:
        InputError: The manifest is missing, damaged or not valid.
        MismatchError: Its format is not one that this realmctl reads.
        ResourceError: The device could not read it.
    """
    path = folder / MANIFEST
    try:
        text = read_small(path, MAX_MANIFEST_BYTES).decode()
        manifest = json.loads(text)
        if not isinstance(manifest, dict):
            raise ValueError("it is not a table")
        require_known_format(manifest, folder)
        sealed = manifest.get("seal") == seal(manifest) and text == _rendered(manifest)
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} is not a readable manifest ({one_line(error)}). Restore it or make the artifact again."
        ) from None
    if not sealed:
        raise InputError(
            f"{path} was changed after it was written: its seal does not hold. Restore it or make the artifact again."
        )
    try:
        check_manifest(manifest)
    except ValueError as error:
        raise InputError(
            f"{path} is not a valid manifest: {one_line(error)}. realmctl never writes such a manifest, so do not "
            "trust this artifact. Restore it or make it again."
        ) from None
    return manifest


def is_artifact(folder: Path) -> bool:
    """Whether `folder` holds a manifest of realmctl, valid or not. Other programs have a manifest.json too."""
    try:
        return "seal" in json.loads(read_small(folder / MANIFEST, MAX_MANIFEST_BYTES))
    except (OSError, ValueError, TypeError, RecursionError, InputError):
        return False


def _rendered(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Convert a metric to JSON: numpy's numbers to Python's, and a number that is not finite to null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
