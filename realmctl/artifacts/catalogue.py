"""What there is: listing, showing and verifying artifacts, as values for `--json` and as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import series
from realmctl.artifacts.artifact import Artifact, open_artifact, verify, version_numbers
from realmctl.errors import InputError, MismatchError


def summary(artifact: Artifact) -> dict[str, Any]:
    """What `--json` prints of an artifact."""
    keys = ("kind", "stage", "content", "recipe", "metrics", "seconds")
    return {"path": str(artifact.path), **{key: artifact.manifest[key] for key in keys}}


def listing(folder: Path) -> list[dict[str, Any]]:
    """Every version of every series below `folder` (or of `folder` itself), damaged ones named as such."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} does not exist (looked from {Path.cwd()}). Name a folder of series, or run a stage."
        )
    finished = [_entry(path / f"v{number}") for path in _series(folder) for number in version_numbers(path)]
    begun = [partial for path in _series(folder) for partial in series.partials(path)]
    return finished + [{"path": str(partial), "kind": "unfinished"} for partial in begun]


def _series(folder: Path) -> list[Path]:
    if version_numbers(folder) or series.partials(folder):
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _entry(path: Path) -> dict[str, Any]:
    try:
        artifact = open_artifact(path)
        size = total_bytes(artifact)
    except (InputError, MismatchError) as error:
        return {"path": str(path), "kind": "damaged", "error": str(error)}
    keys = ("kind", "stage", "content", "time", "seconds")
    return {"path": str(path), "bytes": size, **{key: artifact.manifest[key] for key in keys}}


def total_bytes(artifact: Artifact) -> int:
    """Size of all files, parts included."""
    own = sum(entry["bytes"] for entry in artifact.manifest["files"].values())
    return int(own) + sum(total_bytes(artifact.part(name)) for name in artifact.manifest["parts"])


def listing_text(value: Mapping[str, Any]) -> str:
    """`ls` for people: one line a version."""
    lines = []
    for entry in value["artifacts"]:
        line = f"{entry['path']:<32} {entry['kind']:<11} "
        if "content" in entry:
            line += f"{size_text(entry['bytes']):>9}  {entry['content'][:12]}  "
            line += f"{entry['stage']:<12} {entry['time'][:16]}  {entry['seconds']:>8.1f} s"
        lines.append((line + entry.get("error", "")).rstrip())
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
    """An artifact's manifest and its ancestors; those in the workspace or beside it are named by path."""
    artifact = open_artifact(path)
    return {
        "path": str(artifact.path),
        "manifest": dict(artifact.manifest),
        "ancestors": _ancestors(artifact, near(artifact, workspace)),
    }


def near(artifact: Artifact, workspace: Path) -> dict[str, Artifact]:
    """Every artifact, parts included, of the workspace and of the folder of this artifact's series, by content."""
    folders = {
        artifact.path.absolute().parent.parent: artifact.path.parent.parent,
        workspace.absolute(): workspace,
    }
    return {one.content: one for folder in folders.values() if folder.is_dir() for one in _within(folder)}


def _within(folder: Path) -> Iterator[Artifact]:
    for entry in listing(folder):
        if "content" in entry:
            artifact = open_artifact(entry["path"])
            yield from (artifact.part(name) for name in artifact.manifest["parts"])
            yield artifact


def _ancestors(artifact: Artifact, known: Mapping[str, Artifact]) -> list[dict[str, Any]]:
    tree = []
    for field, content in artifact.manifest["inputs"].items():
        made = known.get(content) if isinstance(content, str) else None
        path, inputs = (str(made.path), _ancestors(made, known)) if made else (None, [])
        tree.append({"field": field, "content": content, "path": path, "inputs": inputs})
    return tree


def shown_text(value: Mapping[str, Any]) -> str:
    """`show` for people."""
    it = value["manifest"]
    made = f"made by {it['stage']} (version {it['stage_version']}) in {it['seconds']} s on {it['time']}"
    lines = [f"{value['path']}  {it['kind']} {it['content'][:12]}", f"{made}, recipe {it['recipe'][:12]}"]
    for title in ("settings", "metrics"):
        lines += [f"{title}:", *(f"  {name:<24} {number}" for name, number in it[title].items())]
    lines += ["files:", *(_file_line(name, entry) for name, entry in it["files"].items())]
    lines += [f"  {name + '/':<36} part       {content[:12]}" for name, content in it["parts"].items()]
    return "\n".join([*lines, "made from:", *_tree(value["ancestors"], "  ")])


def _file_line(name: str, entry: Mapping[str, Any]) -> str:
    return f"  {name:<36} {size_text(entry['bytes']):>9}  {entry['sha256'][:12]}"


def _tree(nodes: list[dict[str, Any]], indent: str) -> list[str]:
    lines = []
    for node in nodes:
        contents = [node["content"]] if isinstance(node["content"], str) else node["content"]
        names = ", ".join(str(content)[:12] for content in contents)
        lines.append(f"{indent}{node['field']}: {node['path'] or 'outside'} ({names})")
        lines += _tree(node["inputs"], indent + "  ")
    return lines


def verified(path: Path) -> dict[str, Any]:
    """Verify one artifact. Raises InputError naming the first damaged file."""
    artifact = open_artifact(path)
    size = verify(artifact)
    return {"path": str(artifact.path), "kind": artifact.kind, "content": artifact.content, "bytes": size}


def verified_text(value: Mapping[str, Any]) -> str:
    """`verify` for people."""
    return "\n".join(f"{one['path']}: whole, {size_text(one['bytes'])} hashed" for one in value["verified"])


def predictions_of(path: Path) -> Path:
    """A predictions file: `path` itself, or that of the scores artifact it is a folder of.

    Raises MismatchError for an artifact of another kind, InputError for a folder without artifacts.
    """
    if not path.is_dir():
        return path
    artifact = open_artifact(path)
    if artifact.kind != "scores":
        raise MismatchError(f"{artifact} holds no predictions. Name a scores artifact, or a file of predictions.")
    return artifact.file("predictions.jsonl")
