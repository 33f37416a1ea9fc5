"""Format the values of catalogue.py as text for people. The text of `ls` fits in 80 columns."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WIDTH = 80
LONGEST_NAME = 22
HASH = re.compile("[0-9a-f]{64}")


def listing_text(value: Mapping[str, Any]) -> str:
    """Format `ls`: a summary, a header, and a line for each version. Names are relative to the listed folder.

    Args:
        value: `folder`, and `artifacts`: entries of `listing`, which may have a `headline`.
    """
    entries = value["artifacts"]
    if not entries:
        return "no artifacts yet"
    names = [os.path.relpath(entry["path"], value["folder"]) for entry in entries]
    width = min(LONGEST_NAME, max(len("VERSION"), *map(len, names)))
    kind_width = max(len("KIND"), *(len(entry["kind"]) for entry in entries))
    header = f"{'VERSION':<{width}}  {'KIND':<{kind_width}}  {'SIZE':>8}  {'MADE (UTC)':<11}  RESULT"
    lines = [_counts(value["folder"], entries), header]
    for name, entry in zip(names, entries, strict=True):
        lines += _listing_lines(name, entry, width, kind_width)
    return "\n".join(lines)


def _counts(folder: str, entries: Sequence[Mapping[str, Any]]) -> str:
    finished = [entry for entry in entries if "content" in entry]
    series = len({Path(entry["path"]).parent for entry in entries})
    parts = [
        f"{len(finished)} version{'' if len(finished) == 1 else 's'} in {series} series, {size_text(sum(entry['bytes'] for entry in finished))}"
    ]
    for kind in ("damaged", "unfinished"):
        count = sum(entry["kind"] == kind for entry in entries)
        parts += [f"{count} {kind}"] if count else []
    return f"{folder}: {', '.join(parts)}"


def _listing_lines(name: str, entry: Mapping[str, Any], width: int, kind_width: int) -> list[str]:
    lines = [] if len(name) <= width else [name]
    line = f"{name if not lines else '':<{width}}  {entry['kind']:<{kind_width}}"
    if "content" in entry:
        line += f"  {size_text(entry['bytes']):>8}  {entry['time'][5:16].replace('T', ' ')}  "
        line += _first_part(entry.get("headline", ""), WIDTH - len(line))
    lines.append(line.rstrip())
    if "error" in entry:
        lines += textwrap.wrap(
            entry["error"], WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False
        )
    return lines


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


def size_text(size: int) -> str:
    """Format bytes: 6.8 GB."""
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def shown_text(value: Mapping[str, Any]) -> str:
    """Format `show` of an artifact."""
    it = value["manifest"]
    made = f"made by {it['stage']} (version {it['stage_version']}) in {it['seconds']} s on {it['time']}"
    lines = [f"{value['path']}  {it['kind']} {it['content'][:12]}", f"{made}, recipe {it['recipe'][:12]}"]
    for title in ("settings", "metrics"):
        lines += [f"{title}:", *(f"  {name:<24} {number}" for name, number in it[title].items())]
    lines += ["files:", *(_file_line(name, entry) for name, entry in it["files"].items())]
    lines += [f"  {name + '/':<36} part       {content[:12]}" for name, content in it["parts"].items()]
    return "\n".join(map(_escaped, [*lines, "made from:", *_tree(value["ancestors"], "  ")]))


def _escaped(line: str) -> str:
    """Escape the control characters of a line, so that the terminal does not obey them."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def _file_line(name: str, entry: Mapping[str, Any]) -> str:
    return f"  {name:<36} {size_text(entry['bytes']):>9}  {entry['sha256'][:12]}"


def _tree(nodes: Sequence[Mapping[str, Any]], indent: str) -> list[str]:
    lines = []
    for node in nodes:
        lines.append(f"{indent}{node['field']}: {_origin(node)}")
        lines += _tree(node["inputs"], indent + "  ")
    return lines


def _origin(node: Mapping[str, Any]) -> str:
    """Name an input by the path of an artifact, the files of a source, or a literal."""
    contents = [node["content"]] if isinstance(node["content"], str) else node["content"]
    if not all(HASH.fullmatch(str(content)) for content in contents):
        return ", ".join(map(str, contents))
    files = ", ".join(f"{file['name']} {size_text(file['bytes'])}" for file in node["files"])
    return f"{node['path'] or files or 'outside'} ({', '.join(str(content)[:12] for content in contents)})"


def shown_file_text(value: Mapping[str, Any]) -> str:
    """Format `show` of a file."""
    lines = [f"{value['path']}: {value['format']}, {size_text(value['bytes'])}"]
    if "artifact" not in value:
        lines.append(
            "It does not belong to an artifact. `realmctl show` describes an artifact when you name its folder."
        )
        return "\n".join(lines)
    lines.append(
        f"It belongs to {value['kind']} {value['artifact']}; `realmctl show {value['artifact']}` describes it."
    )
    if "matches" in value:
        state = (
            "matches the manifest"
            if value["matches"]
            else "does NOT match the manifest: the file is damaged or does not belong to the artifact"
        )
        lines.append(f"Its SHA-256 {state}.")
    return "\n".join(lines)


def verified_text(value: Mapping[str, Any]) -> str:
    """Format `verify`."""
    return "\n".join(f"{one['path']}: intact, {size_text(one['bytes'])} hashed" for one in value["verified"])
