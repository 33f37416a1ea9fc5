"""Sources: what a stage takes from outside the artifacts. Known by content, so that a moved file still fits a recipe."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from realmctl.errors import InputError
from realmctl.hashing import digest_source
from realmctl.log import say

HUB_FILES = ("*.json", "*.safetensors", "pytorch_model.bin", "vocab.txt")


def digest_of(value: Any, literals: tuple[str, ...]) -> Any:
    """What a source contributes to a recipe: the hash of its content, or a literal as it stands. None stays None."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return [digest_of(item, literals) for item in value]
    if is_literal(value, literals):
        return str(value)
    return digest_source(Path(value))


def is_literal(value: Any, literals: tuple[str, ...]) -> bool:
    """Whether a source is spelled out (`train:8000`) instead of lying somewhere."""
    return any(str(value).startswith(prefix) for prefix in literals)


def localise(value: Any, literals: tuple[str, ...], hub: bool, flag: str) -> Any:
    """A source as something on this machine: `-` spooled to a file, a hub id fetched. Raises InputError if there is none."""
    if isinstance(value, tuple):
        return tuple(localise(item, literals, hub, flag) for item in value)
    if is_literal(value, literals):
        return value
    if str(value) == "-":
        return _spool()
    path = Path(value).expanduser()
    if path.exists():
        return path if isinstance(value, Path) else str(path)
    if hub and not str(value).startswith((".", "/", "~")) and str(value).count("/") <= 1:
        return str(_fetch(str(value), flag))
    raise InputError(f"{flag} {value}: there is no such file or folder (looked from {Path.cwd()}). Check the spelling of the path.")


def _spool() -> Path:
    with tempfile.NamedTemporaryFile(prefix="realmctl-stdin-", delete=False) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return Path(file.name)


def _fetch(name: str, flag: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=list(HUB_FILES)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"{flag} {name}: no such folder here, and it could not be had from the hub ({reason}). Name a folder, or check the id and the network."
        ) from None
    say(f"{flag} {name}: using {folder}")
    return folder
