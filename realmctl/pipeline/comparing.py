"""What differs between runs: for `ls`, and for tables of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from realmctl.artifacts import Manifest, catalogue, open_artifact
from realmctl.artifacts.manifest import FORMER

INPUTS_DEEP = 8
"""How many inputs of inputs are looked into for what differs."""
NAMED_ABOVE = 3
"""Inputs that differ in more settings than this are named instead."""

Known: TypeAlias = "Mapping[str, tuple[Path, Manifest]]"
"""{content hash: place and manifest} of the artifacts whose own inputs can be looked into."""


def known_in(folders: Iterable[Path]) -> Known:
    """Return what is known of the artifacts in these folders, and of their parts."""
    known: dict[str, tuple[Path, Manifest]] = {}
    for folder in dict.fromkeys(folder for folder in folders if folder.is_dir()):
        for version in catalogue.listing(folder):
            if version.manifest:
                artifact = open_artifact(version.path)
                for one in (artifact, *artifact.parts()):
                    known.setdefault(one.content, (one.path, one.manifest))
    return known


def differences(manifests: Sequence[Manifest], known: Known, prefix: str = "", depth: int = 0) -> dict[str, list[Any]]:
    """Return {column: a value for each run} of what differs: settings, and what the runs read.

    Where the runs read different artifacts of one stage that are known, what differs between these is compared, as `model.lr`.
    """
    columns: dict[str, list[Any]] = {}
    named: dict[str, list[Any]] = {}
    for name in dict.fromkeys(key for manifest in manifests for key in manifest.settings):
        named[name] = [manifest.settings.get(name) for manifest in manifests]
    columns |= {prefix + name: values for name, values in named.items() if _differ(values)}
    inputs = dict.fromkeys(key for one in manifests for key in one.inputs if not key.startswith(FORMER))
    for name in inputs:
        contents: list[Any] = [manifest.inputs.get(name) for manifest in manifests]
        if not _differ(contents):
            continue
        made = [known[content][1] for content in contents if isinstance(content, str) and content in known]
        below = {}
        if len(made) == len(contents) and len({one.stage for one in made}) == 1 and depth < INPUTS_DEEP:
            below = differences(made, known, f"{prefix}{name}.", depth + 1)
        if not 0 < len(below) <= NAMED_ABOVE:
            below = {prefix + name: [_label(one, name, known) for one in manifests]}
        columns |= below
    distinct: dict[str, list[Any]] = {}
    for name, values in columns.items():
        last = name.rpartition(".")[2]
        if not any(other.rpartition(".")[2] == last and held == values for other, held in distinct.items()):
            distinct[name] = values
    return distinct


def _differ(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values)


def _label(manifest: Manifest, name: str, known: Known) -> str | None:
    """What a run read: files by name with the beginning of their hash, an artifact by its path, a literal as it is."""
    content = manifest.inputs.get(name)
    if not content:
        return None
    if isinstance(content, str) and content in known:
        return str(known[content][0])
    digest = ",".join(str(each)[:8] for each in ([content] if isinstance(content, str) else content))
    files = ",".join(file.name for file in manifest.sources.get(name, ()))
    return f"{files} {digest}" if files else digest


def shown(value: Any) -> str:
    """A value of a setting as text, `-` for None."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    return ",".join(map(shown, value)) or "none" if isinstance(value, list | tuple) else str(value)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Return a table as text, with the cells of a column below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
