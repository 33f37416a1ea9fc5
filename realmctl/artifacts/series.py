"""A series: the numbered versions of one kind of artifact, with one writer at a time.

The lock is a kernel lock (flock) on `.lock`, so a killed writer frees it. An unfinished `.partial` of a
resumable stage is continued by the same recipe alone; one killed between manifest and rename is committed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from realmctl.artifacts.artifact import VERSION_NAME, Artifact, newest_version, open_artifact, verify, version_numbers
from realmctl.artifacts.manifest import MANIFEST, RECIPE, Origin, is_artifact, read_manifest
from realmctl.artifacts.writer import Writer, publish
from realmctl.errors import ConfigError, InputError, LockedError, MismatchError
from realmctl.log import say, warn
from realmctl.storage.durable import sync


def place(out: Path | str, kind: str) -> Path:
    """Where a series may lie. Raises ConfigError for a name or place that cannot hold its versions."""
    text = str(out)
    if not text.strip() or not text.isprintable():
        raise ConfigError(f"--out {text!r} is empty or has characters that cannot be printed. Name a folder.")
    series = Path(text).expanduser()
    for folder in (series, *series.absolute().parents):
        if is_artifact(folder):
            raise ConfigError(f"--out {out} lies in an artifact, {folder}, which never changes. Name a series.")
    nearest = next(folder for folder in (series, *series.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise ConfigError(f"--out {out}: {nearest} is a file; a series is a folder of versions. Name another folder.")
    held = _kind(series)
    if held not in (None, kind):
        raise ConfigError(f"--out {out} holds versions of {held}, not of {kind}. Name another folder.")
    return series


def _kind(series: Path) -> str | None:
    try:
        return str(read_manifest(newest_version(series))["kind"])
    except (InputError, MismatchError):
        return None


def readable(series: Path) -> list[Artifact]:
    """The committed versions, oldest first. A damaged one is passed over with a warning."""
    found = []
    for number in version_numbers(series):
        try:
            found.append(open_artifact(series / f"v{number}"))
        except (InputError, MismatchError) as error:
            warn(str(error))
    return found


def find(series: Path, recipe: str) -> Artifact | None:
    """The newest committed version with this recipe, or None."""
    versions = readable(series)
    found = next((artifact for artifact in reversed(versions) if artifact.recipe == recipe), None)
    if found and found.path != versions[-1].path:
        warn(f"{series} means {versions[-1].path}, which has another recipe; name {found.path} to use this one")
    return found


@contextmanager
def locked(series: Path) -> Iterator[None]:
    """Hold the series; it is made if need be. Raises LockedError naming the process that has it."""
    series.mkdir(parents=True, exist_ok=True)
    handle = os.open(series / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(handle, series)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, series: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 100, 0).decode(errors="replace").strip() or "unknown"
        raise LockedError(
            f"{series} is being written by another run (process {holder}). Wait for it, or use another --out."
        ) from None
    except OSError as error:
        warn(f"{series} cannot be locked ({error.strerror}): start no second run on it")


def settle(series: Path) -> None:
    """Commit what a killed run had finished but for its name. Every byte is checked. Call with it locked."""
    for partial in partials(series):
        if not (partial / MANIFEST).is_file():
            continue
        try:
            verify(Artifact(partial, read_manifest(partial)))
        except InputError as error:
            raise InputError(f"a finished run was not committed and is damaged: {error} {_way_out(partial)}") from None
        say(f"committing {publish(partial, partial.with_suffix('')).path}, which a killed run had finished")


def begin(series: Path, origin: Origin, resumable: bool) -> Writer:
    """The `.partial` to write in: a continued one, or the next number. Call with it locked and settled.

    Raises MismatchError when an unfinished run of another recipe would be lost.
    """
    going_on = unfinished(series, origin)
    for partial in partials(series):
        if partial != going_on:
            shutil.rmtree(partial)
    if going_on:
        say(f"resuming {going_on}")
        return Writer(going_on, origin)
    partial = series / f"v{next_number(series)}.partial"
    partial.mkdir()
    note = {**asdict(origin), "recipe": origin.recipe, "resumable": resumable}
    try:
        (partial / RECIPE).write_text(json.dumps(note), encoding="utf-8")
        sync(partial / RECIPE)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Writer(partial, origin)


@dataclass
class DiscardedWriter(Writer):
    """What the other processes of a run write into: a folder of no account. Scratch they read in the first one's."""

    series: Path = field(kw_only=True)

    def scratch(self, name: str) -> Path:
        """The first process's. Call it once that has begun."""
        [partial] = [each for each in partials(self.series) if _note(each)["recipe"] == self.origin.recipe]
        return Writer(partial, self.origin).scratch(name)


def unfinished(series: Path, origin: Origin) -> Path | None:
    """The `.partial` that a run of this recipe goes on from. Raises MismatchError if it is of another."""
    for partial in partials(series):
        if not worth_keeping(partial):
            continue
        begun = _note(partial)
        if begun["recipe"] == origin.recipe:
            return partial
        raise MismatchError(
            f"{partial} is an unfinished run with other settings ({_difference(begun, asdict(origin))}). "
            f"Finish it with those, use another --out, or: {_way_out(partial)}"
        )
    return None


def worth_keeping(partial: Path) -> bool:
    """Whether an unfinished run has made progress that a restart would lose."""
    scratch = (partial / ".scratch").rglob("*")
    return bool(_note(partial).get("resumable")) and any(path.is_file() for path in scratch)


def discard(writer: Writer) -> None:
    """After a failed run: leave only what a later run can commit or go on from."""
    if not (writer.path / MANIFEST).is_file() and not worth_keeping(writer.path):
        shutil.rmtree(writer.path, ignore_errors=True)


def partials(series: Path) -> list[Path]:
    """The `.partial` folders in it; what else lies there is none of ours."""
    folders = sorted(series.glob("v*.partial"))
    return [folder for folder in folders if folder.is_dir() and VERSION_NAME.fullmatch(folder.stem)]


def next_number(series: Path) -> int:
    """One more than any version that is there, whole or not."""
    matches = (VERSION_NAME.fullmatch(path.name) for path in series.glob("v*"))
    return max((int(match[1]) for match in matches if match), default=0) + 1


def _note(partial: Path) -> dict[str, Any]:
    try:
        note: dict[str, Any] = json.loads((partial / RECIPE).read_text(encoding="utf-8"))
        return note
    except (OSError, ValueError):
        return {}


def _difference(begun: dict[str, Any], wanted: dict[str, Any]) -> str:
    if begun["stage"] != wanted["stage"]:
        return f"it was begun by {begun['stage']}"
    changes = []
    for group in ("settings", "inputs"):
        for name in sorted({*begun[group], *wanted[group]}):
            old, new = begun[group].get(name), wanted[group].get(name)
            if old != new:
                changes.append(f"{name}: {str(old)[:24]} there, {str(new)[:24]} here")
    return "; ".join(changes) or "another version of the stage"


def _way_out(partial: Path) -> str:
    return f"delete it with `rm -r {partial}`."
