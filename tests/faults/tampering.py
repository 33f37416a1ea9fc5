"""Changed files: flipped bits, cuts, and manifests of an attacker, who computes every hash again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realmctl.artifacts import MANIFEST
from realmctl.artifacts.hashing import digest, sealed

Change = Callable[[dict[str, Any]], object]


def edit_manifest(folder: Path, change: Change, *, hashes: bool = False) -> dict[str, Any]:
    """Change a manifest and seal it again.

    Args:
        folder: The artifact.
        change: Changes the manifest in place.
        hashes: Whether `recipe` and `content` are computed again too.
    """
    path = folder / MANIFEST
    manifest = json.loads(path.read_text())
    change(manifest)
    if hashes:
        compute_hashes(manifest)
    manifest = sealed(manifest)
    path.unlink()
    path.write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def compute_hashes(manifest: dict[str, Any]) -> None:
    """Set `recipe` and `content` to what follows from the other fields."""
    manifest["recipe"] = digest(
        [manifest[name] for name in ("stage", "stage_version", "settings", "inputs", "lineage")]
    )
    hashes = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    manifest["content"] = digest([hashes, manifest["parts"]])


def overwrite(path: Path, data: bytes) -> None:
    """Write over a file that is write-protected."""
    path.chmod(0o644)
    path.write_bytes(data)


def flipped(draw: random.Random, data: bytes) -> bytes:
    at, bit = draw.randrange(len(data)), draw.randrange(8)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data))]
