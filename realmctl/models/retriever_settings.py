"""Read retriever.json, which describes a saved retriever."""

from __future__ import annotations

import json
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from realmctl.errors import InputError
from realmctl.models.towers.layout import layout_of

Pooling = Literal["pooler", "cls", "mean"]
ProjectionInit = Literal["random", "pca"]
Towers = Literal["shared", "separate", "query-only"]
NORM_EPS = 1e-12
"""Epsilon of the layer norm in the published weights. The open ICT code leaves Keras's default, 1e-3."""
_SETTINGS = {"projection", "query_length", "block_length", "pooling", "towers", "block_encoder"}


@dataclass(frozen=True)
class ProjectionStart:
    """The initial projection, recorded in retriever.json for people. The weights themselves are in the tower.

    Args:
        init: `random`, or `pca` (`realmctl.models.pca`).
        scale: Scale S of the inner products (see `realmctl.models.retriever`); None when the gain started at 1.
    """

    init: ProjectionInit = "random"
    scale: float | None = None


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the content of retriever.json in `folder`, checked.

    Raises:
        InputError: the file is missing or malformed, or a value is impossible.
    """
    path = folder / "retriever.json"
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        missing = _SETTINGS - set(settings)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"Cannot read {path}: {error}. The folder does not hold a retriever, or holds only part of one."
        ) from error
    if missing:
        raise InputError(f"{path} lacks {', '.join(sorted(missing))}. It was not written by this realmctl.")
    epsilon = settings.setdefault("norm_eps", NORM_EPS)  # folders written before this was a setting lack it
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise InputError(f"{path}: norm_eps is {epsilon!r}, not a number between 0 and 1. The file was changed.")
    try:
        settings["start"] = ProjectionStart(**settings.get("start", {}))
    except TypeError:
        raise InputError(
            f"{path}: start is {settings['start']!r}. A newer realmctl wrote it, or it was changed."
        ) from None
    try:
        layout_of(settings.get("layout"))
    except ValueError as error:
        raise InputError(f"{path}: the layout cannot be used ({error}). The file was changed.") from None
    if settings["pooling"] not in typing.get_args(Pooling):
        raise InputError(
            f"{path}: the pooling {settings['pooling']!r} is unknown. A newer realmctl wrote it, or it was changed."
        )
    return settings
