"""Warnings for artifacts of a newer realmctl, or of a newer version of a stage, than the one that reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.log import warn
from realmctl.version import __version__

_stage_versions: dict[str, int] = {}
_warned: set[str] = set()


def register_stage(name: str, version: int) -> None:
    """Record the version of a stage that this realmctl has."""
    _stage_versions[name] = max(version, _stage_versions.get(name, version))


def warn_if_newer(manifest: Mapping[str, Any], folder: Path) -> None:
    """Warn, once for each version, when an artifact was made by something newer than what is installed.

    Such an artifact is read, because its format is known, but the meaning of its files may have changed.
    """
    stage, version = manifest["stage"], manifest["stage_version"]
    if version > _stage_versions.get(stage, version):
        _warn_once(
            f"{stage} {version}",
            f"{folder} was made by version {version} of {stage}, and this realmctl has version {_stage_versions[stage]}",
        )
    if _release(manifest["realmctl"]) > _release(__version__):
        _warn_once(
            f"realmctl {manifest['realmctl']}",
            f"{folder} was made by realmctl {manifest['realmctl']}, and this is realmctl {__version__}",
        )


def _warn_once(what: str, message: str) -> None:
    if what not in _warned:
        _warned.add(what)
        warn(f"{message}. Upgrade realmctl if it reads the artifact wrongly.")


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (0, 1, 0) of "0.1.0rc1"."""
    match = re.match(r"\d{1,9}(\.\d{1,9}){0,5}", version)
    return tuple(map(int, match[0].split("."))) if match else ()
