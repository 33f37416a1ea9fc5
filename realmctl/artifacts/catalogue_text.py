"""Format what catalogue.py finds as text for people. The text of `ls` fits in 80 columns."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from realmctl.amounts import size_text
from realmctl.artifacts.catalogue import Ancestor, Shown, ShownFile, Verified, Version

WIDTH = 80
LONGEST_NAME = 22
HASH = re.compile("[0-9a-f]{64}")


def listing_text(
    folder: Path,
    versions: Sequence[Version],
    headlines: Mapping[Path, str],
    varying: Mapping[Path, Mapping[str, str]] | None = None,
) -> str:
    """Format `ls`: a summary, a header, and a line for each version. Names are relative to the listed folder.

    headlines: {path of a version: its most important numbers}.
    varying: {path of a version: {setting: value} of what differs from the others of its series}. For one series it stands in
        columns, and the lines may be longer than WIDTH.
    """
    if not versions:
        return "no artifacts yet"
    varying = varying or {}
    names = [os.path.relpath(version.path, folder) + ("*" if version.pinned else "") for version in versions]
    width = min(LONGEST_NAME, max(len("VERSION"), *map(len, names)))
    kind_width = max(len("KIND"), *(len(version.kind) for version in versions))
    finished = [version for version in versions if version.manifest]
    series = len({version.path.parent for version in versions})
    size = size_text(sum(version.bytes for version in finished))
    counts = [f"{len(finished)} version{'' if len(finished) == 1 else 's'} in {series} series, {size}"]
    for kind in ("damaged", "unreadable", "unfinished"):
        count = sum(version.kind == kind and not version.manifest for version in versions)
        counts += [f"{count} {kind}"] if count else []
    columns: dict[str, int] = {}
    if series == 1:
        for values in varying.values():
            for setting, value in values.items():
                columns[setting] = max(columns.get(setting, len(setting)), len(value))
    titles = "".join(f"{setting:<{wide}}  " for setting, wide in columns.items())
    header = f"{'VERSION':<{width}}  {'KIND':<{kind_width}}  {'SIZE':>8}  {'MADE (UTC)':<11}  {titles}RESULT"
    lines = [f"{folder}: {', '.join(counts)}", header]
    for name, version in zip(names, versions, strict=True):
        if len(name) > width:
            lines.append(name)
        line = f"{name if len(name) <= width else '':<{width}}  {version.kind:<{kind_width}}"
        if version.manifest:
            line += f"  {size_text(version.bytes):>8}  {version.manifest.time[5:16].replace('T', ' ')}  "
            differs = varying.get(version.path, {})
            room, result = WIDTH - len(line), headlines.get(version.path, "")
            if columns:
                line += "".join(f"{differs.get(setting, '-'):<{wide}}  " for setting, wide in columns.items())
            elif differs:
                first, *others = result.split(", ")
                result = ", ".join([first, *(f"{name}={value}" for name, value in differs.items()), *others])
            line += _first_part(result, room)
        lines.append(line.rstrip())
        lines += textwrap.wrap(
            version.error, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False
        )
    return "\n".join(lines)


def _first_part(headline: str, width: int) -> str:
    """Return as many numbers of a headline as fit. If not one fits, the name of the first is cut."""
    shown = ""
    parts = headline.split(", ")
    for part in parts:
        longer = f"{shown}, {part}" if shown else part
        if len(longer) > width:
            break
        shown = longer
    name, _, number = parts[0].rpartition(" ")
    room = width - len(number) - len("… ")
    return shown or (f"{name[:room]}… {number}" if name and room > 0 else "")


def shown_text(shown: Shown) -> str:
    """Format `show` of an artifact."""
    it = shown.manifest
    made = f"made by {it.stage} (version {it.stage_version}) in {it.seconds} s on {it.time}"
    lines = [f"{shown.path}  {it.kind} {it.content[:12]}", f"{made}, recipe {it.recipe[:12]}"]
    for title, numbers in (("settings", it.settings), ("metrics", it.metrics)):
        lines += [f"{title}:", *(f"  {name:<24} {number}" for name, number in numbers.items())]
    lines.append("files:")
    lines += [f"  {name:<36} {size_text(file.bytes):>9}  {file.sha256[:12]}" for name, file in it.files.items()]
    lines += [f"  {name + '/':<36} part       {content[:12]}" for name, content in it.parts.items()]
    return "\n".join([*lines, "made from:", *_tree(shown.ancestors, "  ")])


def _tree(nodes: Sequence[Ancestor], indent: str) -> Iterator[str]:
    for node in nodes:
        yield f"{indent}{node.field}: {_origin(node)}"
        yield from _tree(node.inputs, indent + "  ")


def _origin(node: Ancestor) -> str:
    """Name an input by the path of an artifact, the files of a source, or a literal."""
    contents = [node.content] if isinstance(node.content, str) else node.content
    if not all(HASH.fullmatch(str(content)) for content in contents):
        return ", ".join(map(str, contents))
    files = ", ".join(f"{file.name} {size_text(file.bytes)}" for file in node.files)
    return f"{node.path or files or 'outside'} ({', '.join(str(content)[:12] for content in contents)})"


def shown_file_text(shown: ShownFile) -> str:
    """Format `show` of a file."""
    lines = [f"{shown.path}: {shown.format}, {size_text(shown.bytes)}"]
    if shown.artifact is None:
        lines.append(
            "It does not belong to an artifact. `realmctl show` describes an artifact when you name its folder."
        )
    else:
        path = shown.artifact.path
        lines.append(f"It belongs to {shown.artifact}; `realmctl show {path}` describes it.")
    if shown.matches is not None:
        mismatch = "does NOT match the manifest: the file is damaged or does not belong to the artifact"
        lines.append(f"Its SHA-256 {'matches the manifest' if shown.matches else mismatch}.")
    return "\n".join(lines)


def verified_text(verified: Sequence[Verified]) -> str:
    """Format `verify`."""
    return "\n".join(f"{one.path}: intact, {size_text(one.bytes)} hashed" for one in verified)
