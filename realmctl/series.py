"""A series: the numbered versions of one kind of artifact, with one writer at a time.

The lock is a kernel lock (flock) on `.lock`, so a killed writer frees it; it saves work, while correctness rests on the
rename that commits. An unfinished `.partial` of a resumable stage is continued by the same recipe alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from realmctl.artifact import MANIFEST, Artifact, Origin, Writer, open_artifact, publish, version_numbers, verify
from realmctl.errors import ConfigError, InputError, LockedError, MismatchError
from realmctl.log import say, warn


def find(series: Path, recipe: str) -> Artifact | None:
    """The newest committed version with this recipe, or None. A damaged version is passed over with a warning."""
    for number in reversed(version_numbers(series)):
        try:
            artifact = open_artifact(series / f"v{number}")
        except InputError as error:
            warn(str(error))
            continue
        if artifact.recipe == recipe:
            return artifact
    return None


@contextmanager
def locked(series: Path) -> Iterator[None]:
    """Hold the series. Raises LockedError naming the process that has it."""
    if series.exists() and not series.is_dir():
        raise ConfigError(f"--out {series} is a file; a series is a folder of versions. Name another folder.")
    if (series / MANIFEST).exists():
        raise ConfigError(f"--out {series} is one version of an artifact; name its series, {series.parent}, and the next number is taken.")
    series.mkdir(parents=True, exist_ok=True)
    handle = os.open(series / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 100, 0).decode(errors="replace").strip() or "unknown"
            raise LockedError(f"{series} is being written by another run (process {holder}). Wait for it, or use another --out.") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def begin(series: Path, origin: Origin, resumable: bool) -> Writer:
    """The `.partial` to write in: a continued one, or the next number. Call with the series locked.

    Raises MismatchError when an unfinished run of another recipe would be lost.
    """
    recipe = {**origin.__dict__, "recipe": origin.recipe, "resumable": resumable}
    for partial in sorted(series.glob("v*.partial")):
        if _worth_keeping(partial):
            begun = json.loads((partial / "recipe.json").read_text())
            if begun["recipe"] == origin.recipe:
                say(f"resuming {partial}")
                return Writer(partial, origin)
            raise MismatchError(
                f"{partial} is an unfinished run with other settings ({_difference(begun, recipe)}). Finish it with those, "
                f"delete it with `rm -r {partial}`, or use another --out."
            )
        shutil.rmtree(partial)
    partial = series / f"v{max(version_numbers(series), default=0) + 1}.partial"
    partial.mkdir()
    (partial / "recipe.json").write_text(json.dumps(recipe, default=dict))
    return Writer(partial, origin)


def _worth_keeping(partial: Path) -> bool:
    """Whether an unfinished run has made progress that a restart would lose."""
    try:
        resumable = json.loads((partial / "recipe.json").read_text())["resumable"]
    except (OSError, ValueError, KeyError):
        return False
    scratch = partial / ".scratch"
    return bool(resumable) and (any(path.is_file() for path in scratch.rglob("*")) or (partial / MANIFEST).exists())


def _difference(begun: dict[str, Any], wanted: dict[str, Any]) -> str:
    if begun["stage"] != wanted["stage"]:
        return f"it was begun by {begun['stage']}"
    changes = []
    for group in ("settings", "inputs"):
        for name in sorted(set(begun[group]) | set(wanted[group])):
            old, new = begun[group].get(name), wanted[group].get(name)
            if old != new:
                changes.append(f"{name}: {_short(old)} there, {_short(new)} here")
    return "; ".join(changes) or "another stage version"


def _short(value: Any) -> str:
    return str(value)[:24]


def finished(writer: Writer) -> bool:
    """Whether a run was killed between its manifest and its rename: all is there, only the name is missing."""
    return (writer.path / MANIFEST).is_file()


def commit(writer: Writer) -> Artifact:
    """Give a `.partial` with its manifest its name."""
    return publish(writer.path, writer.path.with_suffix(""))


def settle(writer: Writer) -> Artifact:
    """Finish the commit of a killed run after checking every byte."""
    verify(Artifact(writer.path, json.loads((writer.path / MANIFEST).read_text())))
    return commit(writer)


def discard(writer: Writer, resumable: bool) -> None:
    """After a failed run: leave only what a later run can go on from."""
    if writer.path.exists() and not (resumable and _worth_keeping(writer.path)):
        shutil.rmtree(writer.path, ignore_errors=True)
