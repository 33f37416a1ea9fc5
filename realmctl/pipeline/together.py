"""Make one artifact in several processes that torchrun started. The first process alone writes.

The processes meet before any work. They compare what they were given, and they check that they see one folder.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from realmctl.artifacts import Artifact, Origin, Writer, open_artifact, series, unfinished
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import InputError, MismatchError
from realmctl.execution import processes
from realmctl.pipeline.making import found
from realmctl.version import __version__

Exchange = Callable[[Any], Sequence[Any]]
"""Takes the JSON value of this process, and returns those of all processes in order of rank."""
MEETING = "processes"


class StageParts(Protocol):
    """The parts of a stage that `make_together` calls."""

    def find(self, out: Path, origin: Origin) -> Artifact | None:
        """The version of the series that the stage would make."""
        ...

    def run(self, out: Writer) -> object:
        """Run the stage in another process."""
        ...


def make_together(
    work: StageParts,
    run_first: Callable[[Writer], Artifact],
    resumable: bool,
    out: Path,
    origin: Origin,
    exchange: Exchange,
) -> Artifact:
    """Return the artifact of this recipe: a version that exists, or a new one that the processes make together.

    run_first: Runs the stage in the first process and commits the artifact.

    Raises:
        MismatchError: The processes have different recipes or versions of realmctl.
        InputError: The processes see different folders.
    """
    _require_agreement("versions of realmctl", exchange(__version__))
    _require_agreement("recipes (stage, settings, content of the inputs)", exchange(origin.recipe))
    if processes.is_first():
        return _as_first(work, run_first, resumable, out, origin, exchange)
    return _as_other(work, out, origin, exchange)


def _as_first(
    work: StageParts,
    run_first: Callable[[Writer], Artifact],
    resumable: bool,
    out: Path,
    origin: Origin,
    exchange: Exchange,
) -> Artifact:
    with series.locked(out):
        series.commit_finished_runs(out)
        made = work.find(out, origin)
        exchange(str(made.path) if made else "")
        if made:
            return found(made, origin)
        writer = series.start_or_resume(out, origin, resumable)
        try:
            _require_one_folder(writer, exchange)
        except BaseException:
            unfinished.remove_failed_run(writer)
            raise
        made = run_first(writer)
    exchange(str(made.path))
    return made


def _as_other(work: StageParts, out: Path, origin: Origin, exchange: Exchange) -> Artifact:
    found = str(exchange("")[0])
    if not found:
        name, token = exchange("")[0]
        seen = exchange((out / name / ".scratch" / MEETING / token).is_file())
        _require_seen(out, seen)
        exchange(None)  # the first process has removed the file
        with temporary_folder() as folder:
            work.run(unfinished.UnpublishedWriter(folder, origin, series=out))
        found = str(exchange("")[0])
    return open_artifact(Path(found))


def _require_one_folder(writer: Writer, exchange: Exchange) -> None:
    token = writer.scratch(MEETING) / secrets.token_hex(8)
    token.touch()
    try:
        exchange([writer.path.name, token.name])
        seen = exchange(True)
    finally:
        token.unlink()
    _require_seen(writer.path.parent, seen)
    exchange(None)


def _require_seen(out: Path, seen: Sequence[bool]) -> None:
    blind = ", ".join(str(rank) for rank, sees in enumerate(seen) if not sees)
    if blind:
        raise InputError(
            f"process {blind} of {len(seen)} does not see the folder {out} in which process 0 works. Put --out on a disk that "
            "all hosts share, and start the command in the same folder on each."
        )


def _require_agreement(what: str, given: Sequence[str]) -> None:
    others = ", ".join(str(rank) for rank, value in enumerate(given) if value != given[0])
    if others:
        ranks = {value: given.index(value) for value in given}
        values = " and ".join(f"{value[:16]} in process {rank}" for value, rank in ranks.items())
        raise MismatchError(
            f"The {len(given)} processes have different {what}: {values}. Process {others} differs from process 0. Start every "
            "process with the same command, the same inputs and the same installation."
        )
