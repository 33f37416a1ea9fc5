"""Listing, showing and verifying artifacts: as values for `--json`, and as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import unfinished
from realmctl.artifacts.artifact import Artifact, open_artifact, verify, version_numbers
from realmctl.errors import InputError, MismatchError, RealmctlError

MAX_ANCESTORS = 10_000
"""Limit on the nodes of the tree that `shown` makes."""


def summary(artifact: Artifact) -> dict[str, Any]:
    """The fields of an artifact that `--json` prints."""
    keys = ("kind", "stage", "content", "recipe", "metrics", "seconds")
    return {"path": str(artifact.path), **{key: artifact.manifest[key] for key in keys}}


def listing(folder: Path) -> list[dict[str, Any]]:
    """Every version and unfinished run of every series in `folder`, or of `folder` itself.

    A damaged version has the kind `damaged` and the field `error`. Raises InputError when `folder` does not exist.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder} does not exist (looked from {Path.cwd()}). Name a folder of series, or run a stage."
        )
    finished = [_entry(path / f"v{number}") for path in _series(folder) for number in version_numbers(path)]
    partials = [partial for path in _series(folder) for partial in unfinished.partial_folders(path)]
    return finished + [{"path": str(partial), "kind": "unfinished"} for partial in partials]


def _series(folder: Path) -> list[Path]:
    if version_numbers(folder) or unfinished.partial_folders(folder):
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _entry(path: Path) -> dict[str, Any]:
    try:
        artifact = open_artifact(path)
        size = artifact.total_bytes()
    except (RealmctlError, OSError) as error:
        return {"path": str(path), "kind": "damaged", "error": str(error)}
    keys = ("kind", "stage", "content", "time", "seconds")
    return {"path": str(path), "bytes": size, **{key: artifact.manifest[key] for key in keys}}


def listing_text(value: Mapping[str, Any]) -> str:
    """The text of `ls`: one line for each version."""
    lines = []
    for entry in value["artifacts"]:
        line = f"{entry['path']:<32} {entry['kind']:<11} "
        if "content" in entry:
            line += f"{size_text(entry['bytes']):>9}  {entry['content'][:12]}  "
            line += f"{entry['stage']:<12} {entry['time'][:16]}  {entry['seconds']:>8.1f} s"
        lines.append((line + entry.get("error", "")).rstrip())
    return "\n".join(lines) or "no artifacts yet"


def size_text(size: int) -> str:
    """A number of bytes as text: 6.8 GB."""
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def shown(path: Path, workspace: Path) -> dict[str, Any]:
    """An artifact's manifest, and the tree of its ancestors.

    An ancestor that lies in the workspace, or in the same folder of series, has its path. Below others the tree ends.
    """
    artifact = open_artifact(path)
    ancestors = _AncestorTree(near(artifact, workspace)).of(artifact)
    return {"path": str(artifact.path), "manifest": dict(artifact.manifest), "ancestors": ancestors}


def near(artifact: Artifact, workspace: Path) -> dict[str, Artifact]:
    """{content: artifact} of the workspace and of the folder that this artifact's series lies in, parts included."""
    folders = {
        artifact.path.absolute().parent.parent: artifact.path.parent.parent,
        workspace.absolute(): workspace,
    }
    return {one.content: one for folder in folders.values() if folder.is_dir() for one in _within(folder)}


def _within(folder: Path) -> Iterator[Artifact]:
    for entry in listing(folder):
        if "content" in entry:
            artifact = open_artifact(entry["path"])
            yield from artifact.parts()
            yield artifact


class _AncestorTree:
    """The inputs of an artifact, their inputs, and so on, as far as they are in `known`."""

    def __init__(self, known: Mapping[str, Artifact]) -> None:
        self._known, self._nodes = known, 0

    def of(self, artifact: Artifact, above: frozenset[Path] = frozenset()) -> list[dict[str, Any]]:
        """The nodes below `artifact`. `above`: artifacts on the way to it, which are not followed a second time."""
        above |= {artifact.path}
        return [self._node(field, content, above) for field, content in artifact.manifest["inputs"].items()]

    def _node(self, field: str, content: Any, above: frozenset[Path]) -> dict[str, Any]:
        self._nodes += 1
        if self._nodes > MAX_ANCESTORS:
            raise InputError(
                f"More than {MAX_ANCESTORS} ancestors: they are not shown. Remove artifacts that you doubt."
            )
        made = self._known.get(content) if isinstance(content, str) else None
        inputs = self.of(made, above) if made and made.path not in above else []
        return {"field": field, "content": content, "path": str(made.path) if made else None, "inputs": inputs}


def shown_text(value: Mapping[str, Any]) -> str:
    """The text of `show`."""
    it = value["manifest"]
    made = f"made by {it['stage']} (version {it['stage_version']}) in {it['seconds']} s on {it['time']}"
    lines = [f"{value['path']}  {it['kind']} {it['content'][:12]}", f"{made}, recipe {it['recipe'][:12]}"]
    for title in ("settings", "metrics"):
        lines += [f"{title}:", *(f"  {name:<24} {number}" for name, number in it[title].items())]
    lines += ["files:", *(_file_line(name, entry) for name, entry in it["files"].items())]
    lines += [f"  {name + '/':<36} part       {content[:12]}" for name, content in it["parts"].items()]
    return "\n".join(map(_escaped, [*lines, "made from:", *_tree(value["ancestors"], "  ")]))


def _escaped(line: str) -> str:
    """A line whose control characters cannot command the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


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
    """Verify one artifact. Raises InputError, which names the first damaged file."""
    artifact = open_artifact(path)
    size = verify(artifact)
    return {"path": str(artifact.path), "kind": artifact.kind, "content": artifact.content, "bytes": size}


def verified_text(value: Mapping[str, Any]) -> str:
    """The text of `verify`."""
    return "\n".join(f"{one['path']}: whole, {size_text(one['bytes'])} hashed" for one in value["verified"])


def predictions_of(path: Path) -> Path:
    """The predictions file that `path` names: a file, or a scores artifact that holds one.

    Raises MismatchError for an artifact of another kind, InputError for a folder without artifacts.
    """
    if not path.is_dir():
        return path
    artifact = open_artifact(path)
    if artifact.kind != "scores":
        raise MismatchError(f"{artifact} holds no predictions. Name a scores artifact, or a file of predictions.")
    return artifact.file("predictions.jsonl")
