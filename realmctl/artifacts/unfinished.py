"""Unfinished runs of a series: the `vN.partial` folders, and which of them a run continues.

If a resumable stage made progress, only a run of the same recipe may follow, and it continues the unfinished run.
If a run was killed after it wrote its manifest, the next run commits it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path

from realmctl.artifacts.artifact import VERSION_NAME
from realmctl.artifacts.disk import OUTPUT_OPTIONS, QUARANTINE, WRITING_SUFFIX, set_aside
from realmctl.artifacts.folder import MANIFEST, RECIPE, SCRATCH_NAMES
from realmctl.artifacts.hashing import read_sealed, write_sealed
from realmctl.artifacts.manifest import Origin, parse_origin
from realmctl.artifacts.writer import Writer
from realmctl.errors import InputError, MismatchError

BRIEF_SECONDS = 60.0
"""An unfinished run with less work than this gives way to one of other settings or inputs."""
_all_step_aside: ContextVar[bool] = ContextVar("all_step_aside", default=False)
HALF_WRITTEN = ".tmp*"
"""Names of files that safetensors and transformers write before they rename them."""


@dataclass(frozen=True)
class StartedRun:
    """What the `recipe.json` of an unfinished run says."""

    origin: Origin
    resumable: bool


@dataclass
class UnpublishedWriter(Writer):
    """Where processes other than the first one write: a temporary folder.

    They read scratch files, such as checkpoints, from the first process's folder.
    """

    series: Path = field(kw_only=True)

    def scratch(self, name: str) -> Path:
        """The first process's scratch folder. Call it only after the first process has started its run."""
        [partial] = [
            each
            for each in partial_folders(self.series)
            if (started := read_recipe(each)) and started.origin.recipe == self.origin.recipe
        ]
        return Writer(partial, self.origin).scratch(name)


def partial_folders(series: Path) -> list[Path]:
    """The `vN.partial` folders of a series. Everything else in it is ignored."""
    folders = sorted(series.glob("v*.partial"))
    return [path for path in folders if VERSION_NAME.fullmatch(path.stem) and path.is_dir() and not path.is_symlink()]


def unfinished_run(series: Path, origin: Origin) -> Path | None:
    """The folder of the unfinished run that a run of this recipe continues, or None.

    Raises:
        MismatchError: There is an unfinished run of another recipe, whose progress would be lost.
    """
    for partial in partial_folders(series):
        if not has_progress(partial):
            continue
        started = read_recipe(partial)
        if started is None:
            continue  # damaged: `start_or_resume` sets it aside
        if started.origin.recipe == origin.recipe:
            return partial
        if steps_aside(partial):
            continue  # `start_or_resume` sets it aside
        raise MismatchError(
            f"{partial} is an unfinished run with other settings ({_difference(started.origin, origin)}). "
            f"Finish it with those, write elsewhere ({OUTPUT_OPTIONS}), or {delete_hint(partial)}"
        )
    return None


def steps_aside(partial: Path) -> bool:
    """Whether an unfinished run gives way to one of another recipe: one of less than a minute does, and in a shortcut each does."""
    times = [path.stat().st_mtime for path in (partial / ".scratch").rglob("*") if path.is_file()]
    return _all_step_aside.get() or max(times, default=0.0) - (partial / RECIPE).stat().st_mtime < BRIEF_SECONDS


@contextmanager
def letting_all_step_aside(all_do: bool = True) -> Iterator[None]:
    """Within the block every unfinished run that does not fit is moved to the quarantine folder of its series, as when the documents of a shortcut changed."""
    before = _all_step_aside.set(all_do or _all_step_aside.get())
    try:
        yield
    finally:
        _all_step_aside.reset(before)


def has_progress(partial: Path) -> bool:
    """Whether an unfinished run has scratch files, which a new start would lose.

    A run of a stage that is not resumable has no progress. A damaged recipe.json does not say whether the stage is.
    """
    started = read_recipe(partial)
    return (started is None or started.resumable) and any(path.is_file() for path in (partial / ".scratch").rglob("*"))


def remove_or_set_aside(partial: Path) -> None:
    """Remove an unfinished run that has no progress, or that was killed before it wrote anything.

    Move one that steps aside, and what has no readable recipe, to the quarantine folder of its series: it may have progress, or be of someone else.
    """
    if read_recipe(partial) is None and any(path.name != RECIPE + WRITING_SUFFIX for path in partial.iterdir()):
        reason = f"{partial / RECIPE} is missing or damaged, so {partial} is no unfinished run that can be continued."
        set_aside(partial, partial.parent / QUARANTINE, reason)
    elif has_progress(partial):
        set_aside(
            partial, partial.parent / QUARANTINE, f"{partial} is an unfinished run with other settings or inputs."
        )
    else:
        shutil.rmtree(partial)


def remove_half_written(partial: Path) -> None:
    """Remove the files that a library was writing when the run was killed. They would become files of the artifact."""
    for path in partial.rglob(HALF_WRITTEN):
        if path.relative_to(partial).parts[0] not in SCRATCH_NAMES and not path.is_dir():
            path.unlink()


def new_partial(partial: Path, origin: Origin, resumable: bool) -> Writer:
    """Make the folder of a new run, with a file that contains its recipe."""
    partial.mkdir()
    try:
        write_recipe(partial, origin, resumable=resumable)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Writer(partial, origin)


def write_recipe(partial: Path, origin: Origin, *, resumable: bool) -> None:
    """Say in the folder of a run what it makes, and whether it can be continued."""
    path = partial / RECIPE
    began = path.stat().st_mtime_ns if path.exists() else None
    write_sealed(path, {**asdict(origin), "resumable": resumable})
    if began is not None:  # a run that is taken over is as old as it was
        os.utime(path, ns=(began, began))


def remove_failed_run(writer: Writer) -> None:
    """After a run that failed: remove its folder, unless a later run can commit or continue it."""
    if not (writer.path / MANIFEST).is_file() and not has_progress(writer.path):
        shutil.rmtree(writer.path, ignore_errors=True)


def read_recipe(partial: Path) -> StartedRun | None:
    """Return what `new_partial` wrote; None when the file is missing or damaged."""
    try:
        table = read_sealed(partial / RECIPE)
        return StartedRun(parse_origin(table), bool(table["resumable"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError):
        return None


def delete_hint(partial: Path) -> str:
    """How to remove an unfinished run, for messages."""
    return f"delete it with `rm -r {partial}`."


def _difference(started: Origin, wanted: Origin) -> str:
    if started.stage != wanted.stage:
        return f"it was started by {started.stage}"
    changes = []
    for there, here in ((started.settings, wanted.settings), (started.inputs, wanted.inputs)):
        for name in sorted({*there, *here}):
            if there.get(name) != here.get(name):
                changes.append(f"{name}: {str(there.get(name))[:24]} there, {str(here.get(name))[:24]} here")
    return "; ".join(changes) or "another version of the stage"
