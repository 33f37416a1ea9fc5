"""Make one version of a series, for a stage or for an import."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, Origin, Writer, newest_version, series, unfinished, verify, write_manifest
from realmctl.artifacts.artifact import Verification, verification
from realmctl.errors import AccessError
from realmctl.log import say


def make_version(
    out: Path,
    origin: Origin,
    finish: Callable[[Writer], Artifact],
    *,
    find: Callable[[Path, Origin], Artifact | None] = series.find_version,
    resumable: bool = False,
) -> Artifact:
    """Return the version of the series `out` with the recipe of `origin`: one that `find` finds, or a new one from `finish`.

    A version that is found is the newest of its series afterwards: what a run was asked for is what the next one takes.

    Raises AccessError where this user cannot make it the newest again.
    """
    made = find(out, origin)
    if made and series.is_newest(made):
        return found(made, origin)
    if made and not os.access(out, os.W_OK):
        raise AccessError(
            f"{made.path} has this recipe, but {newest_version(out).name} is the newest of {out}, and this user may not write there to "
            f"make {made.path.name} the newest again. Name {made.path} where it is read, or let a user run this who may write."
        )
    with series.locked(out):
        series.commit_finished_runs(out)
        if made := find(out, origin):
            return found(made, origin)
        return finish(series.start_or_resume(out, origin, resumable))


def found(made: Artifact, origin: Origin) -> Artifact:
    """Return the version that a run found, and make it the newest again if it is not: then the lock must be held."""
    if series.is_newest(made):
        say(f"{origin.stage}: nothing to do, {made.path} has this recipe")
    else:
        former = newest_version(made.path.parent)
        series.make_newest(made)
        say(f"{origin.stage}: {made.path} has this recipe, and is the newest again, instead of {former.name}")
    series.warn_if_not_meant(made)
    return made


def write_version(
    writer: Writer, write: Callable[[Writer], Mapping[str, Any]], inputs: Iterable[Artifact] = ()
) -> Artifact:
    """Verify the inputs, write the files with `write`, which returns the metrics, then the manifest, and commit."""
    start = time.monotonic()
    try:
        if verification() is not Verification.QUICK:
            for artifact in inputs:
                verify(artifact)
        metrics = {**writer.metrics, **write(writer)}
        writer.sources_read()
        seconds = time.monotonic() - start
        write_manifest(writer.path, writer.origin, metrics, seconds)
        made = series.commit(writer.path)
    finally:
        unfinished.remove_failed_run(writer)
    say(f"{writer.origin.stage}: made {made.path} in {seconds:.1f} s")
    series.warn_if_not_meant(made)
    return made
