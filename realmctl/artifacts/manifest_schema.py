"""What a manifest of format 1 may hold: its fields, their types and their limits.

The seal of a manifest does not protect against an attacker, who can compute it too. So every value is checked
before it is used, and the two hashes that can be computed from the manifest alone are computed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from realmctl.artifacts.hashing import digest
from realmctl.artifacts.names import component_problem, relative_problem, shown
from realmctl.errors import MismatchError

FORMAT = 1
MANIFEST = "manifest.json"
WRITING = MANIFEST + ".writing"
RECIPE = "recipe.json"
SCRATCH_NAMES = (".scratch", "live")
RESERVED_NAMES = frozenset((MANIFEST, WRITING, RECIPE, *SCRATCH_NAMES))
"""Names at the top of an artifact's folder that no file or part may have."""

MAX_MANIFEST_BYTES = 16 * 2**20
MAX_FILES = 100_000
MAX_PARTS = 64
MAX_PART_DEPTH = 8
"""Limit on parts of parts."""
MAX_JSON_DEPTH = 32
"""Limit on the nesting of settings, inputs and metrics."""
MAX_TEXT_CHARACTERS = 255
"""Limit on short texts, such as the name of a stage."""
MAX_STAGE_VERSION = 10**6
MAX_FILE_BYTES = 2**60
MAX_SECONDS = 10**12

SHA256 = re.compile(r"[0-9a-f]{64}")
FIELDS = frozenset(
    (
        "format",
        "kind",
        "stage",
        "stage_version",
        "settings",
        "inputs",
        "sources",
        "lineage",
        "recipe",
        "content",
        "files",
        "parts",
        "metrics",
        "realmctl",
        "time",
        "seconds",
        "host",
        "seal",
    )
)


def recipe_of(stage: str, version: int, settings: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """The hash of what an artifact is made from."""
    return digest([stage, version, settings, inputs])


def content_of(files: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """The hash of an artifact's files and parts: its identity."""
    return digest([{name: entry["sha256"] for name, entry in files.items()}, dict(parts)])


def require_known_format(manifest: Mapping[str, Any], where: object) -> None:
    """Refuse a manifest of a format that this realmctl does not read.

    Raises:
        ValueError: The format is not a number.
        MismatchError: It is another format than the one that is read.
    """
    number = manifest.get("format")
    if type(number) is not int:
        raise ValueError("its format is not a number")
    if number != FORMAT:
        raise MismatchError(
            f"{where} has artifact format {number}, and this realmctl reads format {FORMAT}. Open it with the realmctl that "
            "made it, or make the artifact again."
        )


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError, which says what is wrong, unless `manifest` is a valid manifest of format 1."""
    if manifest.keys() != FIELDS:
        odd = ", ".join(shown(name) for name in sorted(manifest.keys() ^ FIELDS)[:5])
        raise ValueError(f"fields are missing or unknown: {odd}")
    for name in ("kind", "stage", "realmctl", "time"):
        _require(_is_short_text(manifest[name]) and bool(manifest[name]), f"{name} is not a short text")
    _require(component_problem(manifest["kind"]) is None, "kind is not a name")
    _require(_is_short_text(manifest["host"]), "host is not a short text")
    datetime.fromisoformat(manifest["time"])
    _require(_is_integer(manifest["stage_version"], 0, MAX_STAGE_VERSION), "stage_version is not a valid number")
    _require(type(manifest["seconds"]) in (int, float), "seconds is not a number")
    _require(0 <= manifest["seconds"] <= MAX_SECONDS, "seconds is out of range")
    for name in ("settings", "metrics", "inputs"):
        _require(isinstance(manifest[name], dict), f"{name} is not a table")
        _check_json(manifest[name], MAX_JSON_DEPTH)
    for name, value in manifest["inputs"].items():
        _require(_is_text_or_list(value), f"input {shown(name)} is not a hash")
    _check_hashes("lineage", manifest["lineage"])
    _check_sources(manifest["sources"])
    _check_files(manifest["files"], manifest["parts"])
    _check_computed(manifest)


def _check_sources(sources: Any) -> None:
    """Check the names and sizes of source files. They are only displayed."""
    _require(isinstance(sources, dict), "sources is not a table")
    _check_json(sources, MAX_JSON_DEPTH)
    for field, files in sources.items():
        _require(isinstance(files, list), f"the sources of {shown(field)} are not a list")
        for file in files:
            _require(
                isinstance(file, dict) and file.keys() == {"name", "bytes"}, f"a source of {shown(field)} is not valid"
            )
            _require(isinstance(file["name"], str), f"the name of a source of {shown(field)} is not a text")
            _require(
                _is_integer(file["bytes"], 0, MAX_FILE_BYTES), f"the size of a source of {shown(field)} is not valid"
            )


def _check_files(files: Any, parts: Any) -> None:
    _check_hashes("parts", parts, component_problem)
    _require(len(parts) <= MAX_PARTS, f"it has more than {MAX_PARTS} parts")
    _require(isinstance(files, dict), "files is not a table")
    _require(len(files) <= MAX_FILES, f"it has more than {MAX_FILES} files")
    for name, entry in files.items():
        problem = relative_problem(name)
        _require(problem is None, f"the file name {shown(name)} is not safe: {problem}")
        _require(isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}, f"the entry of {name} is not valid")
        _require(_is_integer(entry["bytes"], 0, MAX_FILE_BYTES), f"the size of {name} is not valid")
        _require(_is_hash(entry["sha256"]), f"the hash of {name} is not a SHA-256")
    for name in [*parts, *files]:
        top = name.partition("/")[0]
        _require(top not in RESERVED_NAMES, f"the name {shown(name)} is reserved")
        _require(name in parts or top not in parts, f"the file {shown(name)} lies in a part")


def _check_computed(manifest: Mapping[str, Any]) -> None:
    recipe = recipe_of(*(manifest[name] for name in ("stage", "stage_version", "settings", "inputs")))
    _require(manifest["recipe"] == recipe, "recipe is not the hash of stage, version, settings and inputs")
    content = content_of(manifest["files"], manifest["parts"])
    _require(manifest["content"] == content, "content is not the hash of files and parts")


def _check_hashes(field: str, value: Any, problem_of: Callable[[str], str | None] = component_problem) -> None:
    """Check a table of names and SHA-256 hashes."""
    _require(isinstance(value, dict), f"{field} is not a table")
    for name, sha256 in value.items():
        problem = problem_of(name)
        _require(problem is None, f"the name {shown(name)} in {field} is not safe: {problem}")
        _require(_is_hash(sha256), f"the hash of {shown(name)} in {field} is not a SHA-256")


def _check_json(value: Any, depth: int) -> None:
    """Texts must have a UTF-8 form, and tables and lists must not be nested deeper than `depth`."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, dict | list):
        _require(depth > 0, f"its values are nested more than {MAX_JSON_DEPTH} deep")
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_json(item, depth - 1)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def _is_integer(value: Any, least: int, most: int) -> bool:
    """Whether `value` is an integer in a range. A bool, which Python counts as an integer, is refused."""
    return type(value) is int and least <= value <= most


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_CHARACTERS and value.isprintable()


def _is_text_or_list(value: Any) -> bool:
    """A hash or literal, or a list of such."""
    return isinstance(value, str) or (isinstance(value, list) and all(map(_is_text_or_list, value)))


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)
