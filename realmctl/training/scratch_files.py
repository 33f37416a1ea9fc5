"""Files that only an unfinished run has: JSON that carries its own hash.

These files are not part of the finished artifact. A run that is resumed reads them, so each read checks a hash.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Write a small JSON file by one rename, so that a reader sees the old content or the new content."""
    partial = path.with_name(path.name + ".writing")
    partial.write_text(json.dumps(value), encoding="utf-8")
    partial.replace(path)


def write_sealed(path: Path, value: Any) -> None:
    """Write JSON together with the SHA-256 of its text; the keys of all mappings must be strings."""
    write_json(path, {"sha256": _seal(value), "value": value})


def read_sealed(path: Path) -> Any:
    """Return what `write_sealed` wrote.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is damaged: it is not JSON, or the hash does not match.
    """
    parsed = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(parsed, dict) or "value" not in parsed or parsed.get("sha256") != _seal(parsed["value"]):
        raise ValueError("its SHA-256 does not match its content")
    return parsed["value"]


def _seal(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
