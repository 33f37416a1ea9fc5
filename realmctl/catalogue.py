"""What there is and what would happen: listing, showing and verifying artifacts, defaults from a workspace, dry runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl import series
from realmctl.artifact import MANIFEST, Artifact, open_artifact, verify, version_numbers
from realmctl.errors import InputError
from realmctl.stage import Stage, flag_of, roles


def with_defaults(stage: type[Stage], given: Mapping[str, Any], workspace: Path) -> dict[str, Any]:
    """Field values with the workspace's artifacts where none was named. Raises InputError for a missing one."""
    values = dict(given)
    for name, role in roles(stage).items():
        if role.name != "reads" or values.get(name) is not None or role.named:
            continue
        if role.unless and all(values.get(other) is not None for other in role.unless):
            continue
        path = workspace / name.replace("_", "-")
        if version_numbers(path) or (path / MANIFEST).is_file():
            values[name] = path
        elif not role.optional:
            raise InputError(
                f"{stage.command()} needs {flag_of(name)}, and {path} has no finished version (looked from {Path.cwd()}). "
                f"Run the stage that makes {' or '.join(role.kinds)} first, or name one."
            )
    return values


def summary(artifact: Artifact) -> dict[str, Any]:
    """What `--json` prints of an artifact."""
    keys = ("kind", "stage", "content", "recipe", "metrics", "seconds")
    return {"path": str(artifact.path), **{key: artifact.manifest[key] for key in keys}}


def plan(stage: Stage, out: Path) -> dict[str, Any]:
    """What making this stage at `out` would do. Nothing is written."""
    local = stage.localised()
    local.check()
    origin = local.origin()
    made = series.find(out, origin.recipe)
    numbers = version_numbers(out)
    last = open_artifact(out / f"v{numbers[-1]}") if numbers else None
    return {
        "stage": stage.command(),
        "makes": str(made.path if made else out / f"v{max(numbers, default=0) + 1}"),
        "reuses": made is not None,
        "inputs": {name: str(artifact.path) for name, artifact in stage.inputs().items()},
        "settings": dict(origin.settings),
        "recipe": origin.recipe,
        "estimate": {**local.estimate(), **({"seconds_of_last_version": last.manifest["seconds"]} if last else {})},
    }


def plan_text(value: Mapping[str, Any]) -> str:
    """A dry run for people."""
    lines = [f"{value['stage']}: would {'reuse' if value['reuses'] else 'make'} {value['makes']}"]
    lines += [f"  input    {name:<20} {path}" for name, path in value["inputs"].items()]
    lines += [f"  setting  {name:<20} {setting}" for name, setting in value["settings"].items()]
    lines += [f"  estimate {name:<20} {_amount(name, number)}" for name, number in value["estimate"].items()]
    return "\n".join(lines)


def _amount(name: str, number: float) -> str:
    return size_text(int(number)) if name.endswith("bytes") else f"{number:g}"


def listing(folder: Path) -> list[dict[str, Any]]:
    """Every version of every series below `folder` (or of the series `folder`), damaged ones named as such."""
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist (looked from {Path.cwd()}). Name a folder of series, or run a stage first.")
    found = [folder] if version_numbers(folder) else sorted(path for path in folder.iterdir() if path.is_dir())
    return [_entry(path / f"v{number}") for path in found for number in version_numbers(path)] + [
        {"path": str(partial), "kind": "unfinished"} for path in found for partial in sorted(path.glob("v*.partial"))
    ]


def _entry(path: Path) -> dict[str, Any]:
    try:
        artifact = open_artifact(path)
    except InputError as error:
        return {"path": str(path), "kind": "damaged", "error": str(error)}
    keys = ("kind", "stage", "content", "time", "seconds")
    return {"path": str(path), "bytes": total_bytes(artifact), **{key: artifact.manifest[key] for key in keys}}


def total_bytes(artifact: Artifact) -> int:
    """Size of all files, parts included."""
    own = sum(entry["bytes"] for entry in artifact.manifest["files"].values())
    return int(own) + sum(total_bytes(artifact.part(name)) for name in artifact.manifest["parts"])


def listing_text(value: Mapping[str, Any]) -> str:
    """`ls` for people: one line a version."""
    lines = []
    for entry in value["artifacts"]:
        if "content" in entry:
            made = f"{entry['stage']:<12} {entry['time'][:16]}  {entry['seconds']:>8.1f} s"
            lines.append(f"{entry['path']:<32} {entry['kind']:<11} {size_text(entry['bytes']):>9}  {entry['content'][:12]}  {made}")
        else:
            lines.append(f"{entry['path']:<32} {entry['kind']:<11} {entry.get('error', '')}")
    return "\n".join(lines) or "no artifacts yet"


def size_text(size: int) -> str:
    """Bytes for people: 6.8 GB."""
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def shown(path: Path, workspace: Path) -> dict[str, Any]:
    """An artifact's manifest and its ancestors: those found in the workspace or beside it are named by path."""
    artifact = open_artifact(path)
    near = [artifact.path.parent.parent, workspace]
    known = {entry["content"]: entry["path"] for folder in near if folder.is_dir() for entry in listing(folder) if "content" in entry}
    return {"path": str(artifact.path), "manifest": dict(artifact.manifest), "ancestors": _ancestors(artifact, known)}


def _ancestors(artifact: Artifact, known: Mapping[str, str]) -> list[dict[str, Any]]:
    tree = []
    for field, content in artifact.manifest["inputs"].items():
        path = known.get(content) if isinstance(content, str) else None
        below = _ancestors(open_artifact(path), known) if path else []
        tree.append({"field": field, "content": content, "path": path, "inputs": below})
    return tree


def shown_text(value: Mapping[str, Any]) -> str:
    """`show` for people."""
    manifest = value["manifest"]
    lines = [f"{value['path']}  {manifest['kind']} {manifest['content'][:12]}"]
    lines += [f"made by {manifest['stage']} (version {manifest['stage_version']}) in {manifest['seconds']} s on {manifest['time']}, recipe {manifest['recipe'][:12]}"]
    for title in ("settings", "metrics"):
        lines += [f"{title}:"] + [f"  {name:<24} {number}" for name, number in manifest[title].items()]
    lines += ["files:"] + [f"  {name:<36} {size_text(entry['bytes']):>9}  {entry['sha256'][:12]}" for name, entry in manifest["files"].items()]
    lines += [f"  {name + '/':<36} part       {content[:12]}" for name, content in manifest["parts"].items()]
    return "\n".join([*lines, "made from:", *_tree(value["ancestors"], "  ")])


def _tree(nodes: list[dict[str, Any]], indent: str) -> list[str]:
    lines = []
    for node in nodes:
        content = node["content"] if isinstance(node["content"], str) else ", ".join(str(part)[:12] for part in node["content"])
        lines.append(f"{indent}{node['field']}: {node['path'] or 'outside'} ({content[:12]})")
        lines += _tree(node["inputs"], indent + "  ")
    return lines


def verified(path: Path) -> dict[str, Any]:
    """Verify one artifact. Raises InputError naming the first damaged file."""
    artifact = open_artifact(path)
    return {"path": str(artifact.path), "kind": artifact.kind, "content": artifact.content, "bytes": verify(artifact)}


def verified_text(value: Mapping[str, Any]) -> str:
    """`verify` for people."""
    return "\n".join(f"{entry['path']}: whole, {size_text(entry['bytes'])} hashed" for entry in value["verified"])
