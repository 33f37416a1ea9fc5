"""What an artifact says of itself: the manifest, the hashes in it, and the files it covers.

Two hashes: `recipe` = H(stage, version, settings, inputs) answers "need I run?"; `content` = H(files) answers
"is it the same thing?". `seal` covers the whole manifest, so that a changed manifest is noticed too.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from realmctl.errors import InputError, MismatchError
from realmctl.storage.durable import sync
from realmctl.storage.hashing import digest, digest_file
from realmctl.version import __version__

FORMAT = 1
MANIFEST = "manifest.json"
WRITING = MANIFEST + ".writing"
RECIPE = "recipe.json"
SCRATCH_NAMES = (".scratch", "live")
MAX_MANIFEST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Origin:
    """What an artifact is made from: all that its recipe hash covers, and the lineage that follows."""

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


def seal(manifest: Mapping[str, Any]) -> str:
    """Hash of all of a manifest but the seal itself."""
    return digest({key: value for key, value in manifest.items() if key != "seal"})


def content_of(files: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """The identity that these files and parts make up."""
    return digest([{name: entry["sha256"] for name, entry in files.items()}, dict(parts)])


def write_manifest(folder: Path, origin: Origin, metrics: Mapping[str, Any], seconds: float) -> None:
    """Describe everything below `folder` in its manifest, written last and made durable after all the rest.

    Parts keep their own manifest.
    """
    inside = sorted(child for child in folder.iterdir() if (child / MANIFEST).is_file())
    parts = {child.name: read_manifest(child)["content"] for child in inside}
    files = {name: _entry(folder / name) for name in names_below(folder, parts)}
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
    _sync_below(folder)
    (folder / WRITING).write_text(_rendered(manifest), encoding="utf-8")
    sync(folder / WRITING)
    (folder / WRITING).rename(folder / MANIFEST)
    sync(folder)


def read_manifest(folder: Path) -> dict[str, Any]:
    """A manifest whose seal holds.

    Raises InputError for a damaged one, MismatchError for one of a newer format.
    """
    path = folder / MANIFEST
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise ValueError("larger than 64 MiB")
        text = path.read_text(encoding="utf-8")
        manifest: dict[str, Any] = json.loads(text)
        format_, sealed = (
            manifest["format"],
            manifest["seal"] == seal(manifest) and text == _rendered(manifest),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not a readable manifest ({error}). Restore it or make the artifact again."
        ) from None
    if isinstance(format_, int) and format_ > FORMAT:
        raise MismatchError(
            f"{folder} has artifact format {format_}, this realmctl reads up to {FORMAT}. Upgrade realmctl."
        )
    if not sealed:
        raise InputError(
            f"{path} was changed after it was written: its seal does not hold. Restore it or make the artifact again."
        )
    return manifest


def is_artifact(folder: Path) -> bool:
    """Whether `folder` holds a manifest of ours, whole or not (other programs have a manifest.json too)."""
    try:
        return "seal" in json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def names_below(folder: Path, parts: Mapping[str, str]) -> list[str]:
    """Relative names of an artifact's own files: no manifest, no scratch, nothing of its parts."""
    names = []
    for below in _folders_below(folder):
        here = below.relative_to(folder)
        if not here.parts or here.parts[0] not in parts:
            names += [str(here / entry.name) for entry in below.iterdir() if not entry.is_dir()]
    return sorted(set(names) - {MANIFEST, WRITING, RECIPE})


def _folders_below(folder: Path) -> Iterator[Path]:
    """`folder` and every folder in it but scratch."""
    for below, folders, _ in os.walk(folder):
        if Path(below) == folder:
            folders[:] = [name for name in folders if name not in SCRATCH_NAMES]
        yield Path(below)


def _entry(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": digest_file(path)}


def _rendered(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """A metric as JSON has it: numpy's numbers as Python's, and null for what is not a finite number."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sync_below(folder: Path) -> None:
    for below in _folders_below(folder):
        for entry in below.iterdir():
            if entry.is_file():
                sync(entry)
        sync(below)
