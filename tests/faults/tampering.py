"""Manifests that an attacker writes: any field changed, and every hash that is asked for computed again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realmctl.artifacts.manifest import seal
from realmctl.artifacts.manifest_schema import MANIFEST, content_of, recipe_of

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
        manifest["recipe"] = recipe_of(*(manifest[name] for name in ("stage", "stage_version", "settings", "inputs")))
        manifest["content"] = content_of(manifest["files"], manifest["parts"])
    manifest["seal"] = seal(manifest)
    path.unlink()
    path.write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def overwrite(path: Path, data: bytes) -> None:
    """Write over a file that is write-protected."""
    path.chmod(0o644)
    path.write_bytes(data)
